"""Options are compared by the log-probabilities that the server gives of the prompt; without them nothing is scored."""

import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import FakeOpenAI
from openai_wire import Answer, prompt_tokens

from nel.cli.main import main
from nel.config.load import load_config
from nel.core.errors import AttemptError, UsageError
from nel.environments.base import SeedResult
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.observability.records import ModelResponse, OptionLikelihood
from nel.orchestration.suite import run_local
from nel.scoring import ScorerInput, likeliest_option
from nel.solvers.loglikelihood import LoglikelihoodSolver, likelihood

WORDS = {" Paris": -0.5, " Rome": -2.0, " Lyon": -3.0, " New": -0.7, " York": -0.1}


def word(tokens, at):
    """A model that knows a few words, each with a likelihood of its own."""
    return WORDS.get(tokens[at], -5.0)


def knowing(body):
    return Answer(content=" ok", prompt_logprob=word, usage={"completion_tokens": 1})


def client_of(server, **options):
    options = {"protocol": "completions", "urls": [server.completions_url], **options}
    return ModelClient(ServiceSettings(name="m", model="fake", **options))


async def solved(task, answer=knowing, **options):
    async with FakeOpenAI(answer) as server:
        client = client_of(server, **options.pop("service", {}))
        try:
            return await LoglikelihoodSolver(client, **options).solve(task), server.bodies
        finally:
            await client.close()


def capital(*options, **more):
    return SeedResult(prompt="The capital of France is", metadata={"options": list(options), **more})


async def test_one_request_for_each_option_and_the_likeliest_is_the_answer():
    result, bodies = await solved(capital(" Rome", " Paris", " Lyon"))
    assert result.response == "Paris"
    assert sorted(body["prompt"] for body in bodies) == [
        "The capital of France is Lyon",
        "The capital of France is Paris",
        "The capital of France is Rome",
    ]
    assert all((body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1) for body in bodies)
    found = result.model_response.loglikelihoods
    assert [option.sum for option in found] == [-2.0, -0.5, -3.0]
    assert [option.greedy for option in found] == [False, True, False]


async def test_the_sum_goes_over_all_tokens_of_the_option_and_per_byte_over_its_text():
    result, _ = await solved(capital(" New York", " Paris"))
    long, short = result.model_response.loglikelihoods
    assert long.sum == pytest.approx(-0.8)
    assert (long.tokens, short.tokens) == (2, 1)
    assert long.per_byte == pytest.approx(-0.8 / len("New York"))
    assert result.response == "Paris"
    assert long.per_byte == pytest.approx(short.per_byte)


async def test_each_option_may_have_a_context_of_its_own():
    task = capital(" Paris", " Paris", option_contexts=["Ann said", "Bob said"])
    _, bodies = await solved(task)
    assert sorted(body["prompt"] for body in bodies) == ["Ann said Paris", "Bob said Paris"]


async def test_the_system_prompt_stands_before_every_context():
    task = capital(" Paris", " Rome")
    task.system = "theirs"
    _, bodies = await solved(task)
    assert bodies[0]["prompt"].startswith("theirs\n\nThe capital")
    _, bodies = await solved(task, system_prompt="mine")
    assert bodies[0]["prompt"].startswith("mine\n\nThe capital")


async def test_the_service_s_generation_parameters_are_not_sent_and_do_not_count():
    _, bodies = await solved(capital(" Paris", " Rome"), service={"generation": {"top_p": 0.5, "stop": ["x"]}})
    assert not {"top_p", "stop"} & bodies[0].keys()
    settings = {"name": "m", "urls": ["http://h/v1/completions"], "protocol": "completions"}
    plain, hot = (
        LoglikelihoodSolver(ModelClient(ServiceSettings(**settings, generation=generation))).identity()
        for generation in ({}, {"temperature": 2.0})
    )
    assert plain == hot


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [{"text": "x", "finish_reason": "length"}]},
        {"choices": [{"text": "x", "logprobs": None, "finish_reason": "length"}]},
        {"choices": [{"text": "x", "logprobs": {"content": []}, "finish_reason": "length"}]},
    ],
)
async def test_a_server_without_log_probabilities_of_the_prompt_is_an_error_and_no_score(reply):
    with pytest.raises(AttemptError, match="no log-probabilities of the prompt") as caught:
        await solved(capital(" Paris", " Rome"), lambda body: reply)
    assert caught.value.category == "bad_response"


async def test_a_server_that_echoes_only_its_own_tokens_is_an_error():
    table = {"tokens": [" ok"], "token_logprobs": [-0.1]}
    reply = {"choices": [{"text": " ok", "logprobs": table, "finish_reason": "length"}]}
    with pytest.raises(AttemptError, match="do not end in the option ' Paris'"):
        await solved(capital(" Paris", " Rome"), lambda body: reply)


async def test_an_outage_of_one_option_is_the_outage_of_the_attempt():
    def answer(body):
        return {"error": {"message": "down", "code": 500}} if "Rome" in body["prompt"] else knowing(body)

    with pytest.raises(AttemptError) as caught:
        await solved(capital(" Paris", " Rome"), answer, service={"max_retries": 0})
    assert caught.value.category == "server_error"


@pytest.mark.parametrize("options", [None, [], "Paris", [" "], [1, 2]])
async def test_a_problem_without_options_is_said(options):
    with pytest.raises(AttemptError, match="`options`"):
        await solved(SeedResult(prompt="Q", metadata={"options": options} if options is not None else {}))


async def test_every_option_needs_a_text_before_it():
    with pytest.raises(AttemptError, match="needs a text before it"):
        await solved(SeedResult(prompt="", metadata={"options": [" a", " b"]}))
    with pytest.raises(AttemptError, match="needs a text before it"):
        await solved(capital(" a", " b", option_contexts=["only one"]))


def test_a_chat_service_is_refused():
    settings = ServiceSettings(name="chatty", urls=["http://h/v1/chat/completions"])
    with pytest.raises(UsageError, match="service chatty speaks chat_completions"):
        LoglikelihoodSolver(ModelClient(settings))


# reading the table


def table(*pairs):
    return {"tokens": [token for token, _ in pairs], "token_logprobs": [value for _, value in pairs]}


def test_a_token_that_spans_the_border_counts_as_the_option_s():
    found = likelihood("bc", table(("x", None), ("ab", -1.0), ("c", -2.0), ("!", -9.0)), 1)
    assert (found.sum, found.tokens) == (-3.0, 2)


def test_tokens_without_text_belong_to_the_character_that_they_begin():
    found = likelihood("é", table(("x", None), ("y", -4.0), ("", -1.0), ("é", -2.0), ("!", -9.0)), 1)
    assert (found.sum, found.tokens, found.per_byte) == (-3.0, 2, -1.5)


def test_a_server_that_generates_nothing_or_counts_nothing_is_understood():
    pairs = (("x", None), (" a", -1.0))
    assert likelihood(" a", table(*pairs), 0).sum == -1.0
    assert likelihood(" a", table(*pairs, (" a", -8.0)), 1).sum == -1.0
    assert likelihood(" a", table(*pairs, ("!", -8.0)), 0).sum == -1.0


def test_a_first_token_of_the_option_without_a_value_is_no_likelihood():
    assert "has no log-probability" in likelihood("x", table(("x", None), ("!", -1.0)), 1)


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=20).filter(str.strip), st.integers(0, 3))
def test_the_tokens_that_count_are_those_that_hold_the_option(context, option, generated):
    tokens = [*prompt_tokens(context + option), *["~"] * generated]
    values = [None, *(-float(at) for at in range(1, len(tokens)))]
    found = likelihood(option, {"tokens": tokens, "token_logprobs": values}, generated)
    if isinstance(found, str):
        assert "has no log-probability" in found
        return
    end = len(tokens) - generated
    held = "".join(tokens[end - found.tokens : end])
    assert held.endswith(option)
    assert not "".join(tokens[end - found.tokens + 1 : end]).endswith(option)
    assert found.sum == -sum(range(end - found.tokens, end))


# scoring


def scored(sums, per_bytes, target, **options):
    found = [OptionLikelihood(sum=s, per_byte=b, tokens=1) for s, b in zip(sums, per_bytes, strict=True)]
    return likeliest_option(ScorerInput("", target, model_response=ModelResponse(loglikelihoods=found)), **options)


def test_the_reward_goes_by_sum_or_by_byte_and_the_other_is_told():
    assert scored([-1.0, -2.0], [-0.5, -0.1], 0) == {
        "correct": True,
        "by_byte": 0.0,
        "extracted": 0,
        "method": "loglikelihood",
    }
    assert scored([-1.0, -2.0], [-0.5, -0.1], 1, per_byte=True)["correct"]
    assert scored([-1.0, -2.0, -3.0], [0.0] * 3, [0, 2])["correct"]


def test_a_reply_without_likelihoods_is_unscored_and_a_wrong_gold_is_an_error():
    assert likeliest_option(ScorerInput("Paris", 0))["outcome"] == "unscored"
    for target in (2, -1, "A", None, True):
        with pytest.raises(ValueError, match="index from 0 to 1"):
            scored([-1.0, -2.0], [0.0, 0.0], target)


# a whole run

BENCHMARK = """
from nel import SelfTest, benchmark, scorer
from nel.environments.self_test import preferred
from nel.scoring import likeliest_option

ROWS = [{"question": f"The capital of {c} is", "options": [" Rome", " Paris", " Lyon"], "right": n}
        for c, n in (("France", 1), ("Italy", 0), ("Gaul", 2), ("Rhone", 2))]

@benchmark(name="capitals", dataset=ROWS, prompt="{question}", target_field="right", endpoint_type="loglikelihood",
           self_test=SelfTest(rows=ROWS, answer=lambda problem: problem.metadata["options"][problem.expected_answer],
                              model_response=preferred))
@scorer
def capitals(sample):
    return likeliest_option(sample)
"""


@pytest.fixture
def capitals(tmp_path):
    (tmp_path / "capitals.py").write_text(BENCHMARK)

    def load(server, solver="{type: loglikelihood, service: m}", protocol="completions", **options):
        url = {"completions": server.completions_url, "chat_completions": server.chat_url}[protocol]
        text = f"""
        services:
          m: {{type: api, url: {url}, protocol: {protocol}, model: fake, proxy: {{max_retries: 0}}}}
        benchmarks:
          - {{name: {tmp_path}/capitals.py, solver: {solver}}}
        output: {{dir: {tmp_path}/run}}
        """
        return load_config(textwrap.dedent(text), use_defaults=False, **options)

    return load


@pytest.mark.parametrize("solver", ["{type: loglikelihood, service: m}", "{type: simple, service: m}"])
def test_a_benchmark_is_decided_by_likelihood_from_config_to_bundle(capitals, tmp_path, solver):
    with FakeOpenAI(knowing) as server:
        result = run_local(capitals(server, solver))
        assert server.count == 12
    (bundle,) = result.bundles.values()
    assert bundle["benchmark"]["scores"]["pass@1"].value == 0.25
    lines = (tmp_path / "run" / "capitals" / "trajectories.jsonl").read_text().splitlines()
    first = next(line for line in map(json.loads, lines) if line.get("problem_idx") == 0)
    assert [round(option["sum"], 3) for option in first["model"]["loglikelihoods"]] == [-2.0, -0.5, -3.0]
    assert first["prompt"] == "The capital of France is"


def test_quick_mode_asks_by_likelihood_and_its_plan_counts_a_request_for_each_option(capitals, tmp_path, capsys):
    with FakeOpenAI(knowing) as server:
        capitals(server)
        bench = ["--bench", f"{tmp_path}/capitals.py", "--model-url", server.completions_url, "-o", f"{tmp_path}/quick"]
        assert main(["eval", "run", *bench, "--dry-run", "--json"]) == 0
        (cell,) = json.loads(capsys.readouterr().out)["cells"]
        assert (cell["attempts"], cell["requests"]) == (4, 12)
        assert main(["eval", "run", *bench]) == 0
        assert len([body for body in server.bodies if "prompt" in body]) == 12
        capsys.readouterr()
        assert main(["eval", "run", *bench, "--max-tokens", "5"]) != 0
        assert "no generation parameter changes: max_tokens" in capsys.readouterr().err


def test_an_edited_option_is_asked_again_and_an_edited_gold_is_not(capitals, tmp_path):
    with FakeOpenAI(knowing) as server:
        run_local(capitals(server))
        path = tmp_path / "capitals.py"
        path.write_text(BENCHMARK.replace('("France", 1)', '("France", 0)'))
        run_local(capitals(server), resume=True)
        assert server.count == 12
        path.write_text(BENCHMARK.replace('[" Rome", " Paris", " Lyon"]', '[" Rome", " Paris", " Nice"]'))
        run_local(capitals(server), resume=True)
        assert server.count == 24


def test_a_server_without_prompt_log_probabilities_scores_nothing(capitals):
    with FakeOpenAI(lambda body: {"choices": [{"text": "x", "finish_reason": "length"}]}) as server:
        result = run_local(capitals(server))
    (bundle,) = result.bundles.values()
    (score,) = bundle["benchmark"]["scores"].values()
    assert (score.scored, score.error) == (0, 4)
    assert score.value is None


def test_what_cannot_be_decided_so_is_refused_before_the_first_request(capitals, tmp_path):
    with FakeOpenAI(knowing) as server:
        with pytest.raises(UsageError, match="speaks chat_completions"):
            run_local(capitals(server, protocol="chat_completions"))
        with pytest.raises(UsageError, match="no generation parameter changes: temperature"):
            run_local(capitals(server, "{type: simple, service: m, generation: {temperature: 1}}"))
        (tmp_path / "capitals.py").write_text(BENCHMARK.replace('"options"', '"choices"'))
        with pytest.raises(UsageError, match="no list of texts as its `options`"):
            run_local(capitals(server))
        assert server.count == 0


async def test_its_self_test_passes(tmp_path):
    from nel.environments.self_test_run import run_self_test

    (tmp_path / "capitals.py").write_text(BENCHMARK)
    (result,) = await run_self_test(str(tmp_path / "capitals.py"))
    assert result.passed, result.faults


def test_an_instruction_template_that_would_change_nothing_is_refused(capitals, tmp_path):
    with FakeOpenAI(knowing) as server:
        loaded = capitals(server, overrides=["benchmarks[0].instruction_template='Q: {prompt}'"])
        run_local(loaded)
        assert server.bodies[0]["prompt"].startswith("Q: The capital")
        before = server.count
        contexts = BENCHMARK.replace('"right": n}', '"right": n, "option_contexts": ["a", "b", "c"]}')
        (tmp_path / "capitals.py").write_text(contexts)
        with pytest.raises(UsageError, match="no instruction_template changes"):
            run_local(loaded)
        assert server.count == before
