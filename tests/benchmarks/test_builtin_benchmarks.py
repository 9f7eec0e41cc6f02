"""The built-in benchmarks: what the catalogue says of them is true, and they ask and grade as they should."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nel.core.errors import DataError
from nel.environments import get_environment
from nel.environments.byob import ByobEnvironment
from nel.environments.catalog import BUILT_IN, BenchmarkInfo

GSM8K = Path(__file__).resolve().parents[3] / "shared" / "data" / "gsm8k-test.jsonl"
OURS = [name for name in BUILT_IN if name.startswith("quickstart_")]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


async def prepared(name, **options):
    env = get_environment(name, **options)
    await env.prepare()
    return env


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_catalogue_tells_the_truth(name):
    info, env = BUILT_IN[name], get_environment(name)
    assert env.name == info.name == name
    assert info.location.startswith("nel.benchmarks.")
    assert info.metric
    assert info.license
    if "://" in info.data:
        assert env.definition.dataset == info.data
        assert re.fullmatch(r"[0-9a-f]{40}|unpinned", info.revision)
    assert ("judge" in info.needs) == env.may_need_judge
    assert ("sandbox" in info.needs) == (env.verify_sandbox is not None)
    assert ("logprobs" in info.needs) == bool(env.generation.get("logprobs"))
    assert ("prompt logprobs" in info.needs) == (env.endpoint_type == "loglikelihood")
    if isinstance(env, ByobEnvironment):
        assert bool(info.cluster) == bool(env.definition.cluster_field)


def test_listing_imports_no_benchmark():
    script = (
        "import sys\nfrom nel.cli.main import main\nassert main(['list']) == main(['list', '--json']) == 0\n"
        "print(*(name for name in sys.modules if name.startswith(('nel.benchmarks', 'nel.scoring', 'nel.solvers'))))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == ""


def test_what_a_benchmark_needs_is_one_of_the_known_things():
    with pytest.raises(ValueError, match="needs 'a GPU', which is none of judge"):
        BenchmarkInfo(name="x", description="", location="m:x", needs=("a GPU",))
    BenchmarkInfo(name="x", description="", location="m:x", needs=("judge", "extra worlds"))


@pytest.mark.parametrize("name", OURS)
async def test_our_own_data_are_complete_and_distinct(name):
    env = await prepared(name)
    size = await env.dataset_size()
    assert size == BUILT_IN[name].size
    problems = [await env.seed(idx) for idx in range(size)]
    assert len({problem.prompt for problem in problems}) == size
    assert all(problem.category and problem.expected_answer is not None for problem in problems)
    assert env.data_identity()["rows"] == size
    assert env.kept_files() == {}
    await env.close()


async def test_gsm8k_works_on_any_file_with_its_columns(tmp_path):
    rows = [
        {"question": "2+2?", "answer": "2+2=<<2+2=4>>4\n#### 4"},
        {"question": "1000+80?", "answer": "so\n#### 1,080"},
    ]
    env = await prepared("gsm8k", dataset=write_rows(tmp_path / "rows.jsonl", rows))
    problem = await env.seed(1)
    assert "1000+80?" in problem.prompt
    assert problem.expected_answer == "1,080"
    for reply, reward in (("We get 1080.\nThe answer is 1080.", 1.0), ("The answer is 108.", 0.0), ("", 0.0)):
        assert (await env.verify(reply, problem.expected_answer, metadata=problem.metadata)).reward == reward


async def test_gsm8k_names_a_row_without_a_gold_answer(tmp_path):
    rows = [{"question": "2+2?", "answer": "4"}]
    with pytest.raises(DataError, match=r"rows\.jsonl:1: prepare_row: .*no `####` line"):
        await prepared("gsm8k", dataset=write_rows(tmp_path / "rows.jsonl", rows))


async def test_every_gold_solution_of_gsm8k_is_graded_right():
    if not GSM8K.is_file():
        pytest.skip(f"{GSM8K.name} is not in ../shared/data beside the repository")
    env = await prepared("gsm8k", dataset=str(GSM8K))
    assert await env.dataset_size() == BUILT_IN["gsm8k"].size
    wrong = []
    for idx in range(await env.dataset_size()):
        problem = await env.seed(idx)
        solution = problem.metadata["answer"]
        said = [
            solution,
            f"Thinking.\nThe answer is ${problem.expected_answer}.",
            f"**Answer: {problem.expected_answer}**",
        ]
        rewards = [
            (await env.verify(reply, problem.expected_answer, metadata=problem.metadata)).reward for reply in said
        ]
        if rewards != [1.0, 1.0, 1.0]:
            wrong.append((idx, rewards))
    assert wrong == []
    await env.close()


async def test_mmlu_asks_with_letters_and_scores_by_subject(tmp_path):
    rows = [
        {"question": "Which?", "subject": "logic", "choices": ["w", "x", "y", "z"], "answer": 2},
        {"question": "Who?", "subject": "law", "choices": ["w", "x", "y", "z"], "answer": "D"},
    ]
    env = await prepared("mmlu", dataset=write_rows(tmp_path / "rows.jsonl", rows))
    first, second = await env.seed(0), await env.seed(1)
    assert "C. y" in first.prompt
    assert (first.expected_answer, first.category) == ("C", "logic")
    assert (second.expected_answer, second.category) == ("D", "law")
    assert (await env.verify("So.\nAnswer: C", "C", metadata=first.metadata)).reward == 1.0
    assert (await env.verify("Because of A", "C", metadata=first.metadata)).reward == 0.0
