"""The checks of IFEval: one for each kind of instruction, from a reply and the instruction's arguments to yes or no.

Names and arguments are those of the published data. Where the published checks use a language detector or a sentence
splitter that has to be downloaded, ours use scripts and punctuation: `language:response_language`,
`length_constraints:number_sentences` and the two capital checks may differ from them on unusual replies.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[str, Mapping[str, Any], str], bool]

CHECKS: dict[str, Check] = {}
"""By the name of the instruction."""

_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_SCRIPTS = {
    "ar": "ARABIC",
    "fa": "ARABIC",
    "ur": "ARABIC",
    "bg": "CYRILLIC",
    "ru": "CYRILLIC",
    "uk": "CYRILLIC",
    "bn": "BENGALI",
    "gu": "GUJARATI",
    "hi": "DEVANAGARI",
    "mr": "DEVANAGARI",
    "ne": "DEVANAGARI",
    "kn": "KANNADA",
    "ko": "HANGUL",
    "pa": "GURMUKHI",
    "ta": "TAMIL",
    "te": "TELUGU",
    "th": "THAI",
    "he": "HEBREW",
    "el": "GREEK",
    "ja": "HIRAGANA",
    "zh": "CJK",
}
_COMMON = {
    "en": "the and of to is in that it for you was with as are",
    "de": "der die und das ist nicht ein eine zu mit den auf für",
    "fr": "le la les et est des une dans que pour pas sur avec",
    "es": "el la de que y en los las una por con para es",
    "it": "il la che di e un una per non con sono gli del",
    "pt": "o a de que e do da em um uma para não com",
    "vi": "và của là không có cho một những được trong",
    "sw": "na ya wa kwa ni za katika hii cha la",
    "fi": "ja on ei että se hän oli mutta kun niin",
    "pl": "i w nie na to jest się z że do",
}


def check(name: str, reply: str, arguments: Mapping[str, Any], prompt: str = "") -> bool:
    """Whether a reply follows an instruction; an empty one follows none."""
    return bool(reply.strip()) and CHECKS[name](reply, arguments, prompt)


def _known(name: str) -> Callable[[Check], Check]:
    def add(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return add


def _compare(count: int, arguments: Mapping[str, Any], what: str, relation: str = "relation") -> bool:
    wanted = int(arguments[what])
    return count < wanted if arguments[relation] == "less than" else count >= wanted


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@_known("keywords:existence")
def _existence(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return all(re.search(word, reply, re.IGNORECASE) for word in given["keywords"])


@_known("keywords:forbidden_words")
def _forbidden(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return not any(re.search(rf"\b{word}\b", reply, re.IGNORECASE) for word in given["forbidden_words"])


@_known("keywords:frequency")
def _frequency(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return _compare(len(re.findall(given["keyword"], reply, re.IGNORECASE)), given, "frequency")


@_known("keywords:letter_frequency")
def _letters(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    count = Counter(reply.lower())[given["letter"].lower()]
    return _compare(count, given, "let_frequency", "let_relation")


@_known("language:response_language")
def _language(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    language = given["language"]
    letters = [character for character in reply if character.isalpha()]
    if not letters:
        return True  # as the published check, which cannot tell either
    script = _SCRIPTS.get(language)
    inside = sum(_of_script(character, script) for character in letters) / len(letters) if script else 0.0
    if script:
        return inside > 0.5 or (language == "ja" and any(_of_script(character, script) for character in letters))
    if sum(ord(character) < 0x250 for character in letters) / len(letters) < 0.5:
        return False
    seen = Counter(word.lower() for word in _words(reply))
    scores = {other: sum(seen[word] for word in words.split()) for other, words in _COMMON.items()}
    return language not in _COMMON or scores[language] == max(scores.values())


def _of_script(character: str, script: str) -> bool:
    name = unicodedata.name(character, "")
    return name.startswith(script) or (script == "HIRAGANA" and name.startswith(("KATAKANA", "CJK")))


@_known("length_constraints:number_sentences")
def _sentences(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    count = len([part for part in re.split(r"(?<=[.!?。！？])[\"'”’)\]]*\s+", reply.strip()) if part.strip()])
    return _compare(count, given, "num_sentences")


@_known("length_constraints:number_words")
def _word_count(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return _compare(len(_words(reply)), given, "num_words")


@_known("length_constraints:number_paragraphs")
def _paragraphs(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    parts = re.split(r"\s?\*\*\*\s?", reply)
    count = len(parts)
    for place, part in enumerate(parts):
        if not part.strip():
            if place not in {0, len(parts) - 1}:
                return False
            count -= 1
    return count == int(given["num_paragraphs"])


@_known("length_constraints:nth_paragraph_first_word")
def _first_word(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    parts = re.split(r"\n\n", reply)
    count = sum(bool(part.strip()) for part in parts)
    nth = int(given["nth_paragraph"])
    if nth > count or nth > len(parts) or not (paragraph := parts[nth - 1].strip()):
        return False
    word = re.split(r"[.,?!'\"]", paragraph.split()[0].lstrip("'\"").lower())[0]
    return count == int(given["num_paragraphs"]) and word == given["first_word"].lower()


@_known("detectable_content:number_placeholders")
def _placeholders(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return len(re.findall(r"\[.*?\]", reply)) >= int(given["num_placeholders"])


@_known("detectable_content:postscript")
def _postscript(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    marker = given["postscript_marker"]
    patterns = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}
    pattern = patterns.get(marker, rf"\s*{re.escape(marker.lower())}.*$")
    return bool(re.findall(pattern, reply.lower(), re.MULTILINE))


@_known("detectable_format:number_bullet_lists")
def _bullets(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    stars = re.findall(r"^\s*\*[^\*].*$", reply, re.MULTILINE)
    dashes = re.findall(r"^\s*-.*$", reply, re.MULTILINE)
    return len(stars) + len(dashes) == int(given["num_bullets"])


@_known("detectable_format:constrained_response")
def _constrained(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    return any(option in reply for option in _OPTIONS)


@_known("detectable_format:number_highlighted_sections")
def _highlights(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    single = [part for part in re.findall(r"\*[^\n\*]*\*", reply) if part.strip("*").strip()]
    double = [
        part for part in re.findall(r"\*\*[^\n\*]*\*\*", reply) if part.removeprefix("**").removesuffix("**").strip()
    ]
    return len(single) + len(double) >= int(given["num_highlights"])


@_known("detectable_format:multiple_sections")
def _sections(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    parts = re.split(rf"\s?{given['section_spliter']}\s?\d+\s?", reply)
    return len(parts) - 1 >= int(given["num_sections"])


@_known("detectable_format:json_format")
def _json(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    text = reply.strip()
    for opening in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(opening)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


@_known("detectable_format:title")
def _title(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    return any(found.lstrip("<").rstrip(">").strip() for found in re.findall(r"<<[^\n]+>>", reply))


@_known("combination:two_responses")
def _two(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    parts = reply.split("******")
    kept = [part for place, part in enumerate(parts) if part.strip() or place not in {0, len(parts) - 1}]
    return len(kept) == 2 and all(part.strip() for part in kept) and kept[0].strip() != kept[1].strip()


@_known("combination:repeat_prompt")
def _repeated(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return reply.strip().lower().startswith(given["prompt_to_repeat"].strip().lower())


@_known("startend:end_checker")
def _end(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    return reply.strip().strip('"').lower().endswith(given["end_phrase"].strip().lower())


@_known("startend:quotation")
def _quoted(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    text = reply.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


@_known("change_case:capital_word_frequency")
def _capital_words(reply: str, given: Mapping[str, Any], _prompt: str) -> bool:
    count = sum(word.isupper() for word in re.findall(r"[\w'-]+", reply))
    return _compare(count, given, "capital_frequency", "capital_relation")


@_known("change_case:english_capital")
def _upper(reply: str, _given: Mapping[str, Any], prompt: str) -> bool:
    return reply.isupper() and _language(reply.lower(), {"language": "en"}, prompt)


@_known("change_case:english_lowercase")
def _lower(reply: str, _given: Mapping[str, Any], prompt: str) -> bool:
    return reply.islower() and _language(reply, {"language": "en"}, prompt)


@_known("punctuation:no_comma")
def _no_comma(reply: str, _given: Mapping[str, Any], _prompt: str) -> bool:
    return "," not in reply
