"""Bad data cost no answer: every row is looked at before the first request, and what is set aside is counted."""

import json

import pytest
from openai_server import FakeOpenAI

from nel.cli.main import main
from nel.core.errors import ConfigError, DataError, UsageError
from nel.environments import BenchmarkDefinition, ByobEnvironment, SkipRow, get_environment
from nel.environments.base import SeedResult

GOOD = [{"id": f"r{n}", "question": f"q{n}", "target": f"t{n}"} for n in range(4)]


async def prepared(rows, **arguments):
    settings = {"name": "mine", "dataset": rows, "prompt": "{question}"} | arguments
    env = ByobEnvironment(BenchmarkDefinition(**settings))
    await env.prepare()
    return env


def changed(number, **values):
    rows = [dict(row) for row in GOOD]
    rows[number] |= values
    return rows


def without(number, column):
    rows = [dict(row) for row in GOOD]
    del rows[number][column]
    return rows


def same(row, _idx, _rng):
    return row


@pytest.mark.parametrize("more", [{}, {"prepare_row": same}])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (without(2, "question"), r"rows, row 3: .*question"),
        (without(3, "target"), r"rows, row 4: no column 'target' \(target_field\)"),
        (without(1, "id"), r"rows, row 2: no column 'id' \(id_field\)"),
        (changed(2, target=None), r"rows, row 3: column 'target' \(target_field\) is null"),
        (changed(2, question=["a", "b"]), r"rows, row 3: column 'question' is list, and text or number in rows, row 1"),
        (changed(2, target={"a": 1}), r"rows, row 3: the expected answer is object, and text or number in rows, row 1"),
        (changed(1, target=True), r"rows, row 2: the expected answer is true or false, and text"),
        (changed(3, id="r1"), r"rows, row 4: the id 'r1' is that of an earlier row"),
    ],
)
async def test_a_row_that_cannot_be_asked_is_named_before_the_first_request(rows, said, more):
    with pytest.raises(DataError, match=said):
        await prepared(rows, id_field="id", **more)


async def test_a_gold_answer_that_cannot_be_read_is_named_with_its_file_and_line(tmp_path):
    rows = [{"question": "2+2?", "answer": "so\n#### 4"}, {"question": "3+3?", "answer": "six"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"rows\.jsonl:2: prepare_row: .*no `####` line"):
        await get_environment("gsm8k", dataset=str(path)).prepare()


async def test_the_first_of_two_rows_with_one_id_is_named():
    with pytest.raises(DataError) as caught:
        await prepared(changed(3, id="r1"), id_field="id")
    assert caught.value.hint == "The first one is rows, row 2."


async def test_text_number_and_alternatives_may_be_mixed():
    rows = [
        {"question": "a", "target": "x"},
        {"question": 3, "target": 4.5},
        {"question": "c", "target": ["x", "y"]},
    ]
    assert await (await prepared(rows)).dataset_size() == 3


async def test_rows_that_cannot_be_asked_are_set_aside_and_counted():
    rows = [
        GOOD[0],
        {**GOOD[1], "target": None},
        GOOD[2],
        {"id": "r9", "target": "t"},
        {**GOOD[3], "id": "r0"},
        {**GOOD[3], "target": None, "id": "r8"},
    ]
    env = await prepared(rows, id_field="id", bad_rows="exclude")
    assert [(await env.seed(idx)).problem_id for idx in range(await env.dataset_size())] == ["r0", "r2"]
    excluded = env.data_identity()["excluded"]
    assert excluded["rows"] == 4
    assert excluded["first"] == "rows, row 2"
    assert excluded["reasons"]["column 'target' (target_field) is null"] == 2
    assert env.data_identity()["rows"] == 6


@pytest.mark.parametrize("by", ["prepare_row", "seed_fn"])
async def test_a_benchmark_sets_rows_aside_by_itself(by):
    def skip(row):
        if row["question"] in {"q0", "q2"}:
            raise SkipRow("no picture")
        return row

    functions = {
        "prepare_row": lambda row, idx, rng: skip(row),
        "seed_fn": lambda row, idx: SeedResult(prompt=skip(row)["question"]),
    }
    env = await prepared(GOOD, **{by: functions[by]} | ({"prompt": ""} if by == "seed_fn" else {}))
    assert [(await env.seed(idx)).prompt for idx in range(await env.dataset_size())] == ["q1", "q3"]
    assert env.data_identity()["excluded"]["reasons"] == {"no picture": 2}
    with pytest.raises(DataError, match="problems are 0 to 1"):
        await env.seed(2)


async def test_data_of_which_nothing_is_left_are_refused():
    with pytest.raises(DataError, match="none of the 4 rows of rows can be asked; rows, row 1: no column 'absent'"):
        await prepared(GOOD, target_field="absent", bad_rows="exclude")


async def test_a_config_says_what_a_bad_row_is(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"question": "2+2?", "answer": "so\n#### 4"}, {"question": "3+3?", "answer": "six"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    env = get_environment("gsm8k", dataset=str(path), params={"bad_rows": "exclude"})
    await env.prepare()
    assert await env.dataset_size() == 1
    assert env.data_identity()["excluded"]["reasons"] == {"prepare_row: ValueError: the answer has no `####` line": 1}
    with pytest.raises(ConfigError, match=r"params\.bad_rows: 'drop' is neither"):
        get_environment("gsm8k", params={"bad_rows": "drop"})
    with pytest.raises(UsageError, match="bad_rows is 'drop'"):
        BenchmarkDefinition(name="x", dataset=GOOD, prompt="{question}", bad_rows="drop")


async def test_only_the_numbers_of_rows_are_kept_and_only_where_some_are_set_aside():
    env = await prepared(GOOD)
    assert env._kept._numbers is None
    env = await prepared(changed(0, target=None), bad_rows="exclude")
    assert list(env._kept._numbers) == [1, 2, 3]


def test_the_report_says_how_many_rows_were_set_aside_and_why(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"question": f"{n}?", "answer": f"#### {n}" if n else "none"} for n in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "run.yaml").write_text(
        f"""
benchmarks:
  - name: gsm8k
    dataset: {path}
    params: {{bad_rows: exclude}}
    solver: {{type: simple, service: m}}
output: {{dir: {tmp_path}/out, report: [markdown]}}
"""
    )
    with FakeOpenAI() as server:
        url = f"{{type: api, url: '{server.chat_url}', model: fake}}"
        assert main(["eval", "run", str(tmp_path / "run.yaml"), "-O", f"services.m={url}"]) == 0
        assert server.count == 4
    report = (tmp_path / "out" / "report.md").read_text()
    assert "1 row of the data set aside and not asked: " in report
    bundle = json.loads(next((tmp_path / "out").glob("gsm8k/eval-*.json")).read_text())
    assert bundle["data"]["excluded"]["rows"] == 1
