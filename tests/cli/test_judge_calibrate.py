"""`nel judge calibrate` says how well a judge agrees with people, and with what exit code."""

import csv
import json
import re

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI, prompt_text

from nel.cli.main import main


def rows_of(labels):
    return [{"prompt": f"q{n}", "response": f"a{n}", "target": "t", "label": label} for n, label in enumerate(labels)]


@pytest.fixture
def labels(tmp_path):
    def write(values, name="labels.jsonl"):
        path = tmp_path / name
        rows = rows_of(values)
        if name.endswith(".csv"):
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


def asked(body):
    return int(re.search(r"\bq(\d+)\b", prompt_text(body))[1])


@pytest.fixture
def server():
    with FakeOpenAI() as fake:
        yield fake


def run(capsys, server, *arguments):
    code = main(["judge", "calibrate", *arguments, "--judge-url", f"{server.url}/v1", "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out) if captured.out else captured.err


SCALE = ("--scale", "yes=1", "--scale", "no=0")


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_agreement_is_told_with_its_intervals_and_who_said_what(capsys, server, labels, name):
    people = ["yes"] * 25 + ["no"] * 25
    judge = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    server.answer = lambda body: f"Hm.\nVerdict: {judge[asked(body)]}"
    code, found = run(capsys, server, labels(people, name), *SCALE)
    assert code == 0
    assert found["accuracy"]["value"] == pytest.approx(0.7)
    assert found["accuracy"]["method"] == "wilson"
    assert found["kappa"]["value"] == pytest.approx(0.4)
    assert found["kappa"]["ci_lower"] < 0.4 < found["kappa"]["ci_upper"]
    assert found["weighted_kappa"] is None
    assert found["confusion"] == {"no": {"no": 15, "yes": 10}, "yes": {"no": 5, "yes": 20}}
    assert (found["scored"], found["usage"]["requests"]) == (50, 50)


def test_what_was_not_judged_is_counted_and_makes_it_degraded(capsys, server, labels):
    server.answer = lambda body: "who knows" if asked(body) == 0 else '{"score": 4}'
    server.rule = lambda body, _: Fault(status=400) if asked(body) == 1 else None
    code, found = run(capsys, server, labels([4, 4, 4, 5]))
    assert code == 3
    assert (found["scored"], found["unparsable"], found["errors"]) == (2, 1, {"bad_request": 1})
    assert found["accuracy"]["value"] == 0.5
    assert found["weighted_kappa"]["value"] == 0.0


def test_labels_of_yes_and_no_are_compared_by_a_threshold(capsys, server, labels):
    server.answer = lambda body: f'{{"score": {5 if asked(body) % 2 else 2}}}'
    code, found = run(capsys, server, labels([0, 1, "false", "true", "no", "yes"]), "--threshold", "4")
    assert (code, found["accuracy"]["value"], found["kappa"]["value"]) == (0, 1.0, 1.0)


@pytest.mark.parametrize(("wrong", "wanted", "code"), [(0, "0.9", 0), (2, "0.9", 2), (10, "0.9", 1), (10, "-1", 0)])
def test_the_least_agreement_decides_the_exit_code(capsys, server, labels, wrong, wanted, code):
    people = ["yes", "no"] * 40
    server.answer = lambda body: f'{{"verdict": "{people[asked(body) + (asked(body) < wrong)]}"}}'
    assert run(capsys, server, labels(people), *SCALE, "--min-kappa", wanted)[0] == code


def test_nothing_judged_is_a_failure(capsys, server, labels):
    server.answer = lambda _: "no"
    code, found = run(capsys, server, labels([1, 2]))
    assert (code, found["scored"], found["accuracy"]["value"], found["kappa"]) == (1, 0, None, None)


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        ([4, 9], (), "labels.jsonl:2: the label 9 is no score from 1 to 5"),
        (["yes", "maybe"], SCALE, "none of yes, no"),
        ([1, 2], ("--threshold", "3"), "neither yes (1) nor no (0)"),
        ([1], ("--label-field", "verdict"), "no column 'verdict'"),
        ([1], ("--scale", "yes"), "is not LABEL=SCORE"),
        ([1], ("--metric", "q"), "--metric goes with --config"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_judge_is_asked(capsys, server, labels, values, arguments, message):
    code, said = run(capsys, server, labels(values), *arguments)
    assert code == 64
    assert message in said
    assert server.count == 0


def test_the_judge_of_a_config_is_taken_with_its_rubric(capsys, server, labels, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        f"services:\n  m: {{type: api, url: 'http://m/v1/chat/completions', model: m}}\n"
        f"  j: {{type: api, url: '{server.chat_url}', model: judge}}\n"
        "benchmarks:\n  - name: any\n    solver: {type: simple, service: m}\n"
        "    scoring: {metrics: [{type: judge, name: q, service: j, rubric: BE STRICT}]}\n"
    )
    server.answer = lambda _: '{"score": 3}'
    kept = tmp_path / "verdicts.jsonl"
    code = main(["judge", "calibrate", labels([3, 3]), "--config", str(config), "-o", str(kept)])
    printed = capsys.readouterr().out
    assert code == 0
    assert "BE STRICT" in prompt_text(server.bodies[0])
    assert "Accuracy" in printed
    assert "Cohen's kappa" in printed
    assert [json.loads(line)["agrees"] for line in kept.read_text().splitlines()] == [True, True]
    assert main(["judge", "calibrate", labels([3]), "--config", str(config), "--metric", "p"]) == 64
    assert "no judge 'p'" in capsys.readouterr().err
    assert main(["judge", "calibrate", labels([3]), "--config", str(config), "--rubric", "x"]) == 64
    assert "--rubric goes with --judge-url" in capsys.readouterr().err


def test_a_person_reads_how_far_the_judge_agrees_and_where_it_does_not(capsys, server, labels):
    people = ["yes"] * 30 + ["no"] * 30
    said = ["yes"] * 28 + ["no"] * 2 + ["yes"] * 6 + ["no"] * 24
    server.answer = lambda body: f"Verdict: {said[asked(body)]}"
    arguments = ["judge", "calibrate", labels(people), *SCALE, "--judge-url", f"{server.url}/v1", "--min-kappa", "0.7"]
    assert main(arguments) == 2
    printed = capsys.readouterr().out
    assert "60 judged, 0 unscored (0 could not be read), 0 errors" in printed
    assert re.search(r"Accuracy +0\.867 +0\.\d+ to 0\.\d+ +same as the label on 52 of 60", printed)
    assert re.search(r"Cohen's kappa +0\.733 +0\.\d+ to 0\.\d+ +substantial, where chance alone agrees on 50", printed)
    assert "people say no, the judge says yes (6 of 8)" in printed
    assert printed.rstrip().endswith("below 0.7; label more rows")


def test_full_agreement_on_a_few_rows_proves_little(capsys, server, labels):
    people = ["yes", "no"] * 3
    server.answer = lambda body: f"Verdict: {people[asked(body)]}"
    code, found = run(capsys, server, labels(people), *SCALE, "--min-kappa", "0.6")
    assert (code, found["kappa"]["value"], found["kappa"]["ci_lower"]) == (2, 1.0, None)


def test_a_near_miss_weighs_by_its_distance_on_the_scale(capsys, server, labels):
    """Nobody says 2, 3 or 4: a 1 instead of a 5 is still four steps away, and a 4.5 has no step of its own."""
    people = [1, 5] * 10
    said = [1] + [5] * 19
    server.answer = lambda body: f'{{"score": {said[asked(body)]}}}'
    _, found = run(capsys, server, labels(people))
    assert found["weighted_kappa"]["value"] == pytest.approx(found["kappa"]["value"])
