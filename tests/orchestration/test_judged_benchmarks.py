"""SimpleQA, HealthBench and XSTest end to end: a model and a judge over HTTP, the judge at times talking nonsense."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main

DATA = Path(__file__).parents[3] / "shared" / "data"
CONFIG = """
services:
  model: {{type: api, url: {model}, model: pupil}}
  judge: {{type: api, url: {judge}, model: teacher}}
benchmarks:
  - name: {bench}
    dataset: {data}
    shuffle_seed: null
    solver: {{type: simple, service: model}}
    scoring: {{metrics: [{{type: judge, name: judge, service: judge, max_retries: 0}}]}}
output: {{dir: out}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def act(bench, rows, answer, grade):
        data = rows
        if not isinstance(rows, Path):
            data = tmp_path / "rows.jsonl"
            data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with FakeOpenAI(answer) as model, FakeOpenAI(grade) as judge:
            text = CONFIG.format(model=model.chat_url, judge=judge.chat_url, bench=bench, data=data)
            (tmp_path / "config.yaml").write_text(text)
            main(["eval", "run", "config.yaml"])
        return json.loads((tmp_path / f"out/{bench}/eval-{bench}.json").read_text())

    return act


def test_simpleqa_counts_three_classes_and_has_the_f_score_of_its_paper(run):
    rows = [{"problem": f"question {n}", "answer": f"name{n}", "metadata": "{}"} for n in range(10)]
    answers = ["name{n}", "other", "I do not know", "name{n} nonsense"]

    def answer(body):
        n = int(prompt_text(body).split()[1])
        return answers[n % 4].format(n=n)

    def grade(body):
        said = re.search(r"--- ANSWER \w+ ---\n(.*?)\n--- END", prompt_text(body), re.DOTALL)[1]
        if "nonsense" in said:
            return "What a lovely day."
        return "Verdict: " + ("correct" if "name" in said else "incorrect" if said == "other" else "not_attempted")

    bundle = run("simpleqa", rows, answer, grade)
    scores = bundle["benchmark"]["scores"]
    # 0 4 8 right, 1 5 9 wrong, 2 6 not attempted; the judge could not be read on 3 and 7
    assert (bundle["counts"]["scored"], bundle["counts"]["unscored"]) == (8, 2)
    assert scores["pass@1"]["value"] == 3 / 8
    overall, given = 3 / 8, 3 / 6
    assert scores["f_score"]["value"] == pytest.approx(2 * overall * given / (overall + given))


def test_healthbench_asks_for_every_criterion_and_counts_points_and_penalties(run):
    rubrics = [("mentions water.", 5), ("mentions rest.", 3), ("mentions smoking.", -8)]
    rows = [
        {
            "prompt": [{"role": "user", "content": f"case {n}"}],
            "prompt_id": str(n),
            "example_tags": ["theme:hedging"],
            "rubrics": [{"criterion": text, "points": points, "tags": []} for text, points in rubrics],
        }
        for n in range(3)
    ]
    answers = ["water and rest", "water", "smoking"]

    def grade(body):
        text = prompt_text(body)
        word = re.search(r"mentions (\w+)\.", text)[1]
        said = re.search(r"--- ANSWER \w+ ---\n(.*?)\n--- END", text, re.DOTALL)[1]
        return f"Verdict: {'met' if word in said else 'not_met'}"

    bundle = run("healthbench", rows, lambda body: answers[int(prompt_text(body).split()[1])], grade)
    scores = bundle["benchmark"]["scores"]
    assert scores["mean_reward"]["value"] == pytest.approx((1 + 5 / 8 - 1) / 3)
    assert scores["clipped_mean"]["value"] == pytest.approx((1 + 5 / 8 - 1) / 3)
    assert set(bundle["benchmark"]["categories"]) == {"hedging"}


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} is not here")
def test_xstest_loads_the_published_rows_and_tells_safe_from_unsafe(run):
    def grade(body):
        said = re.search(r"--- ANSWER \w+ ---\n(.*?)\n--- END", prompt_text(body), re.DOTALL)[1]
        return f"Verdict: {'full_refusal' if 'cannot' in said else 'full_compliance'}"

    bundle = run("xstest", DATA / "xstest_prompts.csv", lambda body: "I cannot help.", grade)
    categories = bundle["benchmark"]["categories"]
    assert (categories["safe"]["value"], categories["unsafe"]["value"]) == (0.0, 1.0)
    assert bundle["counts"]["scored"] == 450
