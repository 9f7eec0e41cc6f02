"""A self-test tells a benchmark that grades right from one that does not, with no model and no network."""

import json

import pytest

from nel.cli.main import main
from nel.core.errors import UsageError
from nel.environments.self_test import SelfTest
from nel.environments.self_test_run import run_self_test

ROWS = [{"question": f"{n} + {n}?", "answer": 2 * n} for n in range(5)]

SOURCE = """
from nel import SelfTest, benchmark, scorer
from nel.scoring import {imports}

ROWS = [{{"question": f"{{n}} + {{n}}?", "answer": 2 * n}} for n in range(5)]

@benchmark("sums", "absent.jsonl", "{{question}}", "answer", self_test=SelfTest(
    rows=ROWS, answer=lambda problem: f"It is {{problem.expected_answer}}.", {more}))
@scorer
def sums(sample):
    {body}
"""


def written(folder, body, more="", imports="numeric_match"):
    path = folder / "sums.py"
    path.write_text(SOURCE.format(body=body, more=more, imports=imports))
    return str(path)


async def result_of(*arguments, **options):
    (result,) = await run_self_test(written(*arguments, **options))
    return result


async def test_a_benchmark_that_grades_right_passes(tmp_path):
    result = await result_of(tmp_path, "return numeric_match(sample)")
    assert (result.rows, result.gold, result.empty, result.shuffled) == (5, 1.0, 0.0, 0.0)
    assert result.passed


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("return False", "gold reply: reward 0"),
        ("return sample.response == '' or numeric_match(sample)", "empty reply: reward 1"),
        ("return sample.response != ''", "shuffled replies have a mean of 1; at most 0 is chance"),
        ("return 1 / 0", "gold reply: error: ZeroDivisionError: division by zero"),
        ("return {'outcome': 'unscored', 'reason': 'too hard'}", "gold reply: unscored (too hard)"),
        ("return 0.5 * numeric_match(sample)['correct']", "gold reply: reward 0.5"),
    ],
)
async def test_what_is_wrong_is_told(tmp_path, body, fault):
    result = await result_of(tmp_path, body)
    assert not result.passed
    assert any(told.startswith(fault) for told in result.faults), result.faults


async def test_faults_of_one_kind_are_counted_after_the_first_three(tmp_path):
    result = await result_of(tmp_path, "return False")
    assert result.faults[-1] == "gold reply: 2 more"
    assert len(result.faults) == 4


async def test_chance_is_what_shuffled_replies_may_reach(tmp_path):
    lenient = "return float(numeric_match(sample)['correct'] or 0.25 * bool(sample.response))"
    assert not (await result_of(tmp_path, lenient)).passed
    assert (await result_of(tmp_path, lenient, "chance=0.25")).passed


async def test_rows_go_through_prepare_row(tmp_path):
    more = "), prepare_row=lambda row, idx, rng: {**row, 'answer': row['answer'] + 1}, extra=dict("
    result = await result_of(tmp_path, "return numeric_match(sample) if sample.target % 2 else 1 / 0", more)
    assert result.passed, result.faults


async def test_a_row_that_cannot_be_prepared_is_a_fault_with_its_place(tmp_path):
    result = await result_of(tmp_path, "return 1", "), prepare_row=lambda row, idx, rng: row['absent'], extra=dict(")
    assert "row 1: prepare_row: no column 'absent'" in result.faults[0]


JUDGED = "return needs_judge(rubric='Is it the same number?', labels={'right': 1, 'wrong': 0})"
JUDGE = """judge=lambda prompt: '{"verdict": "%s"}' % (
    "right" if any(f"It is {2 * n}." in prompt and str(2 * n) in prompt.split("EXPECTED", 1)[1].split("ANSWER", 2)[1]
    and f"{n} + {n}?" in prompt for n in range(5)) else "wrong")"""


async def test_a_judged_benchmark_is_graded_by_the_scripted_judge_through_the_real_parsing(tmp_path):
    result = await result_of(tmp_path, JUDGED, JUDGE, imports="needs_judge")
    assert (result.gold, result.empty, result.shuffled) == (1.0, 0.0, 0.0)
    nonsense = await result_of(tmp_path, JUDGED, "judge=lambda prompt: 'hm'", imports="needs_judge")
    assert nonsense.faults[0].startswith("gold reply: unscored (judge judge:")


async def test_a_judged_benchmark_without_a_scripted_judge_fails(tmp_path):
    result = await result_of(tmp_path, JUDGED, imports="needs_judge")
    assert "the benchmark needs a judge" in result.faults[0]


async def test_each_of_the_params_is_tested(tmp_path):
    body = "return numeric_match(sample)['correct'] and not sample.config['strict']"
    path = written(tmp_path, body, "params=[{}, {'strict': True}]), extra=dict(strict=False")
    usual, strict = await run_self_test(path)
    assert usual.passed
    assert (strict.params, strict.gold) == ({"strict": True}, 0.0)


CLASS = """
from nel import EvalEnvironment, SeedResult, SelfTest, VerifyResult, register
import json
from pathlib import Path

@register
class Echo(EvalEnvironment):
    name = "echo"
    self_test = SelfTest(rows=[{"word": word} for word in "abcd"], answer=lambda problem: problem.expected_answer)

    def __init__(self, dataset=None):
        self.rows = [json.loads(line) for line in Path(dataset).read_text().splitlines()] if dataset else []

    async def dataset_size(self):
        return len(self.rows)

    async def seed(self, idx):
        return SeedResult(prompt="Say it", expected_answer=self.rows[idx]["word"])

    async def verify(self, response, expected, sandbox=None, *, metadata, model_response=None):
        return VerifyResult(reward=float(response == expected))
"""


async def test_an_environment_class_has_its_self_test_as_an_attribute(tmp_path):
    (tmp_path / "echo.py").write_text(CLASS)
    (result,) = await run_self_test(str(tmp_path / "echo.py"))
    assert result.passed
    assert result.rows == 4


def test_a_self_test_that_could_tell_nothing_is_refused():
    with pytest.raises(UsageError, match="at least 4 are needed"):
        SelfTest(rows=ROWS[:3], answer=str)
    with pytest.raises(UsageError, match="chance=1"):
        SelfTest(rows=ROWS, answer=str, chance=1.0)


async def test_rows_that_all_have_one_reply_are_refused(tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(SOURCE.format(body="return True", more="", imports="numeric_match").replace("2 * n", "7"))
    (result,) = await run_self_test(str(path))
    assert "the same reply" in result.faults[0]


def test_the_command_prints_a_table_and_fails_with_the_reason(tmp_path, capsys):
    right = written(tmp_path, "return numeric_match(sample)")
    assert main(["validate", "--self-test", right, "quickstart_facts"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["Benchmark", "Rows", "Gold", "Empty", "Shuffled", "Chance", "Self-test"]
    assert first.split()[1:] == ["5", "1", "0", "0", "0", "passed"]
    assert second.split()[0] == "quickstart_facts"
    wrong = written(tmp_path, "return True")
    assert main(["validate", "--self-test", wrong]) == 1
    said = capsys.readouterr()
    assert "FAILED" in said.out
    assert "shuffled replies have a mean of 1" in said.err


def test_as_json_the_faults_are_listed(tmp_path, capsys):
    assert main(["validate", "--self-test", "--json", written(tmp_path, "return False")]) == 1
    (found,) = json.loads(capsys.readouterr().out)["benchmarks"]
    assert (found["gold"], found["passed"]) == (0.0, False)
    assert found["faults"]


def test_a_benchmark_without_a_self_test_is_said(tmp_path, capsys):
    path = tmp_path / "plain.py"
    path.write_text(
        "from nel import benchmark, scorer\n@benchmark('p', 'x.jsonl', '{q}')\n@scorer\ndef p(sample):\n    return 1\n"
    )
    assert main(["validate", "--self-test", str(path)]) != 0
    assert "has no self-test" in capsys.readouterr().err


def test_flags_that_say_nothing_to_a_self_test_are_refused(capsys):
    assert main(["validate", "--self-test"]) == 64
    assert "nel validate --self-test all" in capsys.readouterr().err
    assert main(["validate", "--self-test", "gsm8k", "--samples", "2"]) == 64
    assert "--samples says nothing" in capsys.readouterr().err
