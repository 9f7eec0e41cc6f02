"""MGSM: grade-school maths word problems in eleven languages, asked in their own; scores by language.

Source: Shi et al., "Language Models are Multilingual Chain-of-Thought Reasoners" (2022). The data set is made by a
script, so its files are read as the hub has converted them..
"""

from __future__ import annotations

from random import Random
from typing import Any

from nel.environments.decorators import benchmark, scorer
from nel.environments.rows import SkipRow
from nel.environments.self_test import SelfTest
from nel.scoring import ScorerInput, numeric_match

ASKED = {
    "bn": "ধাপে ধাপে সমাধান করুন। শেষ লাইনে শুধু লিখুন: উত্তর: সংখ্যা",
    "de": "Löse die Aufgabe Schritt für Schritt. Schreibe als letzte Zeile nur: Antwort: Zahl",
    "en": "Solve this problem step by step. Write as the last line only: Answer: number",
    "es": "Resuelve el problema paso a paso. Escribe como última línea solo: Respuesta: número",
    "fr": "Résolvez le problème étape par étape. Écrivez comme dernière ligne seulement : Réponse : nombre",
    "ja": "段階的に解いてください。最後の行には次のようにだけ書いてください。答え: 数",
    "ru": "Решите задачу шаг за шагом. Последней строкой напишите только: Ответ: число",
    "sw": "Tatua tatizo hatua kwa hatua. Andika kama mstari wa mwisho tu: Jibu: nambari",
    "te": "దశలవారీగా పరిష్కరించండి. చివరి పంక్తిలో ఇది మాత్రమే రాయండి: సమాధానం: సంఖ్య",
    "th": "แก้โจทย์ทีละขั้นตอน เขียนบรรทัดสุดท้ายเพียงว่า คำตอบ: จำนวน",
    "zh": "请逐步解题。最后一行只写：答案：数字",
}
STATED = {
    "bn": "উত্তর",
    "de": "Antwort",
    "en": "Answer",
    "es": "Respuesta",
    "fr": "Réponse",
    "ja": "答え",
    "ru": "Ответ",
    "sw": "Jibu",
    "te": "సమాధానం",
    "th": "คำตอบ",
    "zh": "答案",
}
"""How an answer begins in each language."""
_DECIMAL_COMMAS = frozenset({"de", "es", "fr", "ru"})


def in_its_language(row: dict[str, Any], _idx: int, _rng: Random) -> dict[str, Any]:
    """The row with the instruction of its language; `config` is the language."""
    language = row["config"]
    if language not in ASKED:
        raise SkipRow(f"no instruction in {language!r}")
    return {**row, "language": language, "asked": ASKED[language], "gold": row["answer_number"]}


@benchmark(
    name="mgsm",
    dataset=f"hf://juletxara/mgsm?config={','.join(ASKED)}&split=test&revision=refs/convert/parquet",
    prompt="{asked}\n\n{question}",
    target_field="gold",
    prepare_row=in_its_language,
    category_field="language",
    self_test=SelfTest(
        rows=[
            {"config": language, "question": f"{number} + 1 = ?", "answer": None, "answer_number": number + 1}
            for number, language in enumerate(ASKED, start=1200)
        ],
        answer=lambda problem: f"{STATED[problem.metadata['language']]}: {problem.expected_answer}",
    ),
)
@scorer
def mgsm(sample: ScorerInput) -> dict[str, Any]:
    """Whether the stated number is the expected one; in four languages a comma is the decimal mark."""
    comma = sample.metadata["language"] in _DECIMAL_COMMAS
    verdict = numeric_match(sample)
    if comma and not verdict["correct"]:
        return numeric_match(sample, decimal=",")
    return verdict
