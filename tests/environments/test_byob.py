"""A benchmark of one's own: every argument of `@benchmark` has its effect."""

import json

import pytest

from nel.core.errors import ConfigError, DataError, MissingDependencyError, UsageError
from nel.environments import (
    BenchmarkDefinition,
    ByobEnvironment,
    EvalEnvironment,
    SeedResult,
    benchmark,
    get_environment,
    register,
    scorer,
)
from nel.observability.records import ModelResponse, Outcome
from nel.scoring import exact_match

ROWS = [{"question": f"What is {i} + 1?", "target": str(i + 1)} for i in range(4)]


async def prepared(**arguments):
    settings = {"name": "mine", "dataset": ROWS, "prompt": "{question}"} | arguments
    env = ByobEnvironment(BenchmarkDefinition(**settings))
    await env.prepare()
    return env


async def prompts(env):
    return [(await env.seed(idx)).prompt for idx in range(await env.dataset_size())]


BENCH = """
from nel.environments import benchmark, scorer
from nel.scoring import exact_match

@benchmark(name="sums", dataset="rows.jsonl", prompt="{question} Reply as {{json}}.", target_field="answer")
@scorer
def sums(sample):
    return exact_match(sample)
"""


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bench.py").write_text(BENCH)
    write_rows(tmp_path / "rows.jsonl", [{"question": f"{i}+1?", "answer": i + 1} for i in range(3)])
    return tmp_path


async def test_a_benchmark_is_one_file(folder):
    env = get_environment(str(folder / "bench.py"))
    await env.prepare()
    assert (env.name, await env.dataset_size(), env.endpoint_type) == ("sums", 3, "chat")
    problem = await env.seed(1)
    assert (problem.prompt, problem.expected_answer, problem.messages) == ("1+1? Reply as {json}.", 2, None)
    assert problem.metadata == {"question": "1+1?", "answer": 2}
    verdict = await env.verify("2", problem.expected_answer, metadata=problem.metadata)
    assert (verdict.reward, verdict.outcome) == (1.0, Outcome.SCORED)
    await env.close()


async def test_without_a_scorer_the_answer_must_match_exactly():
    env = await prepared()
    assert (await env.verify("The 2.", "2", metadata={})).reward == 1.0
    assert (await env.verify("12", "2", metadata={})).reward == 0.0
    assert (await env.verify("", "2", metadata={})).failure_category == "empty_response"


async def test_any_column_name_is_only_a_name():
    row = {
        name: name.upper()
        for name in ("response", "expected", "sandbox", "metadata", "self", "prompt", "target", "idx")
    }
    env = await prepared(dataset=[row], prompt="{response} {expected} {sandbox} {metadata} {self} {prompt}")
    problem = await env.seed(0)
    assert problem.prompt == "RESPONSE EXPECTED SANDBOX METADATA SELF PROMPT"
    assert (await env.verify("TARGET", problem.expected_answer, metadata=problem.metadata)).reward == 1.0


async def test_the_scorer_sees_answer_target_row_config_and_reply():
    seen = []

    def look(sample):
        seen.append(sample)
        return True

    env = await prepared(scorer=look, extra={"tolerance": 2})
    problem = await env.seed(0)
    reply = ModelResponse(content="2", finish_reason="stop")
    await env.verify("2", problem.expected_answer, "box", metadata=problem.metadata, model_response=reply)
    (sample,) = seen
    assert (sample.response, sample.target, sample.metadata) == ("2", "1", ROWS[0])
    assert (sample.config, sample.sandbox, sample.model_response) == ({"tolerance": 2}, "box", reply)


async def test_an_answer_can_be_graded_without_the_data():
    env = ByobEnvironment(BenchmarkDefinition(name="mine", dataset="gone.jsonl", prompt="{q}"))
    assert (await env.verify("2", "2", metadata={})).reward == 1.0
    assert env.data_identity() == {}


# --- prompt, columns -------------------------------------------------------------------------------------------------


async def test_a_prompt_file_stands_beside_the_defining_file(folder):
    (folder / "bench.py").write_text(BENCH.replace('"{question} Reply as {{json}}."', '"ask.jinja"'))
    (folder / "ask.jinja").write_text("{% for c in question %}{{ c }} {% endfor %}")
    env = get_environment(str(folder / "bench.py"))
    await env.prepare()
    assert (await env.seed(0)).prompt == "0 + 1 ? "


async def test_the_system_prompt_and_the_labels_of_a_problem(folder):
    rows = [
        {"q": "a", "target": "b", "subject": "law", "passage": 7, "key": 1},
        {"q": "c", "target": "d", "subject": None, "passage": 7, "key": 2},
    ]
    env = await prepared(
        dataset=rows,
        prompt="{q}",
        system_prompt="Be {short}.",
        category_field="subject",
        cluster_field="passage",
        id_field="key",
    )
    first, second = await env.seed(0), await env.seed(1)
    assert (first.system, first.category, first.cluster, first.problem_id) == ("Be {short}.", "law", "7", "1")
    assert (second.category, second.problem_id) == (None, "2")


async def test_a_benchmark_may_have_no_expected_answer():
    env = await prepared(dataset=[{"q": "a"}], prompt="{q}", target_field=None)
    assert (await env.seed(0)).expected_answer is None


async def test_a_column_gets_the_name_that_the_prompt_uses():
    env = await prepared(dataset=[{"input": "x", "gold": "y"}], field_mapping={"input": "question", "gold": "target"})
    problem = await env.seed(0)
    assert (problem.prompt, problem.expected_answer) == ("x", "y")
    assert problem.metadata == {"input": "x", "gold": "y", "question": "x", "target": "y"}


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        ({"prompt": "{qestion}"}, r"row 1: no column for the prompt's field {qestion}", "'question'"),
        ({"target_field": "targte"}, r"row 1: no column 'targte' \(target_field\)", "'target'"),
        ({"category_field": "topic"}, r"no column 'topic' \(category_field\)", "question, target"),
        ({"cluster_field": "topic"}, r"\(cluster_field\)", "question"),
        ({"id_field": "id"}, r"\(id_field\)", "question"),
        ({"field_mapping": {"input": "question"}}, r"no column 'input' \(field_mapping\)", "question"),
        ({"prompt": "{{ qestion }}"}, "'qestion' is undefined", "'question'"),
        ({"prompt": "always the same"}, "all 4 problems would be the same", "question"),
        ({"dataset": []}, "has no rows", None),
    ],
)
async def test_what_data_and_prompt_do_not_share_is_an_error_before_the_first_request(arguments, said, hint):
    with pytest.raises(DataError, match=said) as caught:
        await prepared(**arguments)
    assert hint is None or hint in caught.value.hint


async def test_a_row_far_down_that_lacks_a_column_is_found_before_the_first_request(tmp_path):
    rows = [{"question": "?", "target": "!"}] * 500 + [{"qestion": "?", "target": "!"}]
    write_rows(tmp_path / "rows.jsonl", rows)
    with pytest.raises(DataError, match=r"rows\.jsonl:501: no column for the prompt's field {question}") as caught:
        await prepared(dataset=str(tmp_path / "rows.jsonl"))
    assert "{{question}}" in caught.value.hint


async def test_a_null_in_a_row_is_found_before_the_first_problem():
    with pytest.raises(DataError, match=r"mine: rows, row 5: the prompt's field {question} is null"):
        await prepared(dataset=[*ROWS, {"question": None, "target": "x"}])


async def test_preparing_twice_reads_the_data_once():
    calls = []
    env = await prepared(dataset=lambda: calls.append(1) or ROWS)
    await env.prepare()
    assert calls == [1]
    await env.close()


async def test_a_problem_that_does_not_exist_is_named():
    env = await prepared()
    for idx in (-1, 4):
        with pytest.raises(DataError, match="problems are 0 to 3"):
            await env.seed(idx)


# --- prepare_row, seed_fn --------------------------------------------------------------------------------------------


def shuffled(row, idx, rng):
    options = list(range(20))
    rng.shuffle(options)
    return {**row, "options": options}


async def test_a_rows_random_source_depends_on_the_row_alone():
    env = await prepared(prepare_row=shuffled, prompt="{question} {options}")
    plain = await prompts(env)
    assert len(set(plain)) == 4
    assert (await env.seed(2)).prompt == plain[2]
    inserted = await prepared(
        dataset=[{"question": "new", "target": "x"}, *ROWS], prepare_row=shuffled, prompt="{question} {options}"
    )
    assert (await prompts(inserted))[1:] == plain
    reseeded = await prepared(prepare_row=shuffled, prompt="{question} {options}", row_seed=7)
    assert all(one != other for one, other in zip(await prompts(reseeded), plain, strict=True))


async def test_prepare_row_may_bring_the_columns_that_prompt_and_target_need():
    env = await prepared(
        dataset=[{"text": "a|b"}, {"text": "c|d"}],
        prompt="{left}",
        target_field="right",
        prepare_row=lambda row, idx, rng: dict(zip(("left", "right"), row["text"].split("|"), strict=True)),
    )
    problem = await env.seed(1)
    assert (problem.prompt, problem.expected_answer, problem.metadata) == ("c", "d", {"left": "c", "right": "d"})


async def test_seed_fn_makes_the_whole_problem():
    def seed_fn(row, idx):
        return SeedResult(
            prompt=f"{idx}: {row['question']}", messages=[{"role": "user", "content": "hi"}], images=["a.png"]
        )

    env = await prepared(prompt="", seed_fn=seed_fn, system_prompt="Be brief.", id_field="question")
    problem = await env.seed(1)
    assert (problem.prompt, problem.expected_answer, problem.system) == ("1: What is 1 + 1?", "2", "Be brief.")
    assert (problem.problem_id, problem.metadata) == ("What is 1 + 1?", ROWS[1])
    assert problem.images == ["a.png"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"prepare_row": lambda row, idx, rng: row["x"]}, "row 1: prepare_row: no column 'x'"),
        ({"prepare_row": lambda row, idx, rng: None}, "prepare_row returned NoneType"),
        ({"prompt": "", "seed_fn": lambda row, idx: 1 / 0}, "row 1: seed_fn: ZeroDivisionError"),
        ({"prompt": "", "seed_fn": lambda row, idx: "text"}, "seed_fn returned str"),
    ],
)
async def test_a_function_that_fails_is_named_with_the_row(arguments, said):
    with pytest.raises(DataError, match=said):
        await prepared(**arguments)


# --- definition ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": " "}, "needs a name"),
        ({"endpoint_type": "completion"}, "'completions'"),
        ({"prompt": ""}, "has no prompt"),
        ({"seed_fn": lambda row, idx: None}, "has a prompt and a seed_fn"),
        ({"extra": {"judge": print}}, r"extra\['judge'\] is no JSON value"),
        ({"generation": {"temperature": float("nan")}}, "generation"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(arguments, said):
    with pytest.raises(UsageError, match=said):
        BenchmarkDefinition(**{"name": "mine", "dataset": ROWS, "prompt": "{question}"} | arguments)


def test_requirements_are_refused_with_the_command_that_installs_them():
    with pytest.raises(MissingDependencyError, match="pip install no-such-package"):
        ByobEnvironment(
            BenchmarkDefinition(name="mine", dataset=ROWS, prompt="{question}", requirements=["no-such-package"])
        )


def test_endpoint_type_generation_and_version_are_those_of_the_environment():
    env = ByobEnvironment(
        BenchmarkDefinition(
            name="mine",
            dataset=ROWS,
            prompt="{question}",
            endpoint_type="completions",
            generation={"max_tokens": 1},
            version="3",
        )
    )
    assert (env.endpoint_type, env.generation, env.version) == ("completions", {"max_tokens": 1}, "3")
    assert EvalEnvironment.generation == {}


def test_further_arguments_are_the_scorers_config_and_a_slip_is_not():
    @benchmark(name="config", dataset=ROWS, prompt="{question}", tolerance=3, extra={"unit": "m"})
    @scorer
    def judged(sample):
        return True

    env = get_environment("config", params={"tolerance": 5})
    assert env.definition.extra == {"unit": "m", "tolerance": 5}
    with pytest.raises(UsageError, match="unknown argument 'target_filed'") as caught:
        benchmark(name="x", dataset=ROWS, prompt="{question}", target_filed="answer")
    assert "'target_field'" in caught.value.hint
    with pytest.raises(UsageError, match="'unit' stands in `extra`"):
        benchmark(name="x", dataset=ROWS, prompt="{question}", unit="m", extra={"unit": "m"})


def test_the_scorer_mark_is_not_optional_and_its_shape_is_checked():
    with pytest.raises(UsageError, match="is no scorer") as caught:

        @benchmark(name="x", dataset=ROWS, prompt="{question}")
        def plain(sample):
            return True

    assert "@scorer between" in caught.value.hint
    with pytest.raises(UsageError, match="exactly one argument"):

        @scorer
        def two(response, target):
            return True


# --- params, dataset -------------------------------------------------------------------------------------------------


async def test_params_change_config_and_plain_settings(folder):
    env = get_environment(
        str(folder / "bench.py"), params={"prompt": "Say {question}", "system_prompt": "Hi", "id_field": "answer"}
    )
    await env.prepare()
    problem = await env.seed(0)
    assert (problem.prompt, problem.system, problem.problem_id) == ("Say 0+1?", "Hi", "1")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"promt": "x"}, r"params\.promt: unknown parameter"),
        ({"num_fewshot": 5}, r"params\.num_fewshot: sums asks without examples"),
        ({"prompt": 3}, r"params\.prompt: 3 is not a str"),
        ({"row_seed": True}, r"params\.row_seed: True is not a int"),
        ({"scorer": "x"}, r"params\.scorer: unknown"),
    ],
)
def test_a_parameter_that_has_no_effect_is_refused(folder, params, said):
    with pytest.raises(ConfigError, match=said):
        get_environment(str(folder / "bench.py"), params=params)


def test_a_near_parameter_is_named_and_no_examples_are_no_examples(folder):
    with pytest.raises(ConfigError, match="'prompt'"):
        get_environment(str(folder / "bench.py"), params={"promt": "x"})
    get_environment(str(folder / "bench.py"), num_fewshot=0)
    with pytest.raises(ConfigError, match="zero-shot"):
        get_environment(str(folder / "bench.py"), num_fewshot=2)


async def test_another_file_replaces_the_data_and_its_digest_is_recorded(folder, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write_rows(elsewhere / "other.jsonl", [{"question": "new", "answer": "x"}])
    own = get_environment(str(folder / "bench.py"))
    await own.prepare()
    assert own.data_identity()["source"] == "rows.jsonl"
    for dataset in (str(elsewhere / "other.jsonl"), {"path": str(elsewhere / "other.jsonl")}):
        env = get_environment(str(folder / "bench.py"), dataset=dataset)
        await env.prepare()
        assert (await env.seed(0)).prompt.startswith("new")
        assert env.data_identity()["rows"] == 1
        assert env.data_identity()["sha256"] != own.data_identity()["sha256"]
    monkeypatch.chdir(elsewhere)
    relative = get_environment(str(folder / "bench.py"), dataset="other.jsonl")
    await relative.prepare()
    assert await relative.dataset_size() == 1


# --- identity --------------------------------------------------------------------------------------------------------


def test_the_scoring_identity_follows_code_version_and_config(folder):
    spec = str(folder / "bench.py")
    first = get_environment(spec).scoring_identity()
    assert get_environment(spec).scoring_identity() == first
    assert first["built_in"] == {"exact_match": "1"}
    (folder / "bench.py").write_text(BENCH.replace("return exact_match(sample)", "return True"))
    assert get_environment(spec).scoring_identity()["code"] != first["code"]
    (folder / "bench.py").write_text(BENCH.replace('name="sums"', 'name="sums", version="2", tolerance=1'))
    changed = get_environment(spec).scoring_identity()
    assert (changed["version"], changed["config"]) == ("2", {"tolerance": 1})
    assert get_environment(spec, params={"tolerance": 2}).scoring_identity()["config"] == {"tolerance": 2}


def test_a_copy_elsewhere_has_the_same_scoring_identity(folder, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "bench.py"
    copy.write_text(BENCH)
    assert get_environment(str(copy)).scoring_identity() == get_environment(str(folder / "bench.py")).scoring_identity()


async def test_the_kept_file_is_enough_to_grade_again_anywhere(folder, tmp_path_factory):
    kept = get_environment(str(folder / "bench.py")).kept_files()
    assert kept == {"bench.py": BENCH.encode()}
    elsewhere = tmp_path_factory.mktemp("rescored")
    (elsewhere / "bench.py").write_bytes(kept["bench.py"])
    env = get_environment(str(elsewhere / "bench.py"))
    assert (await env.verify("2", 2, metadata={})).reward == 1.0


def test_a_registered_definition_knows_its_file():
    item = register(BenchmarkDefinition(name="plain-definition", dataset=ROWS, prompt="{question}", scorer=exact_match))
    assert item.folder.name == "environments"
    env = get_environment("plain-definition")
    assert list(env.kept_files()) == ["test_byob.py"]
