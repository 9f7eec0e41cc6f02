"""Judges, ensembles, comparisons and reward models, each asked over HTTP."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_faults import Fault
from openai_server import FakeOpenAI, prompt_text

from nel.core.errors import UsageError
from nel.inference.client import ModelClient
from nel.inference.settings import ServiceSettings
from nel.observability.records import MetricScore, Outcome
from nel.scoring import JudgeQuestion, ScorerInput, judge_score, needs_judge
from nel.scoring.judging import prompts
from nel.scoring.judging.asking import RETRY_STRIDE, Judge, JudgeSettings
from nel.scoring.judging.ensemble import EnsembleMetric, pair_agreement
from nel.scoring.judging.judge import JudgeMetric
from nel.scoring.judging.pairwise import ExpectedBaseline, PairwiseMetric
from nel.scoring.judging.request import questions_of
from nel.scoring.judging.reward import RewardModelMetric, read_rewards
from nel.scoring.judging.scale import Scale
from nel.scoring.metric import JudgedSample, Metric

SAMPLE = JudgedSample(
    response="It is Rome.", target="Paris", prompt="Capital?", messages=[{"role": "user", "content": "Capital?"}]
)


def client(server, name="j", *, url=None, **settings):
    return ModelClient(ServiceSettings(name=name, urls=[url or server.chat_url], model=name, max_retries=0, **settings))


def judge(server, name="j", *, client_settings=None, **settings):
    return Judge(client(server, name, **(client_settings or {})), JudgeSettings(**settings))


def said(score):
    return json.dumps({"reasoning": "so", "score": score})


async def scored(metric, sample=SAMPLE, *judges):
    score = await metric.score(sample)
    for one in judges:
        await one.client.close()
    return score


async def test_each_try_is_another_repeat_with_another_seed():
    replies = iter(["nonsense", "4", said(4)])
    async with FakeOpenAI(lambda _: next(replies)) as server:
        one = judge(server, generation={"seed": 7, "max_tokens": 50})
        score = await scored(JudgeMetric("q", one), SAMPLE, one)
    assert [body["seed"] for body in server.bodies] == [7, 7 + RETRY_STRIDE, 7 + 2 * RETRY_STRIDE]
    assert all(body["max_tokens"] == 50 for body in server.bodies)
    assert (score.value, score.details["score"]) == (0.75, 4)
    assert score.details["verdicts"]["verdict"]["unreadable"] == ["nonsense", "4"]
    assert score.details["judge_usage"]["requests"] == 3


async def test_the_budget_ends_unscored_with_the_text_kept():
    async with FakeOpenAI(lambda _: "I cannot say") as server:
        one = judge(server, max_retries=1)
        score = await scored(JudgeMetric("q", one), SAMPLE, one)
    assert (score.outcome, score.value, server.count) == (Outcome.UNSCORED, None, 2)
    assert score.details["category"] == "judge_unparsable"
    assert score.details["verdicts"]["verdict"]["reply"] == "I cannot say"


@pytest.mark.parametrize(
    ("fault", "category"),
    [(Fault(status=429), "rate_limit"), (Fault(status=500), "server_error"), (Fault(status=401), "auth_error")],
)
async def test_an_outage_has_the_category_of_its_failure(fault, category):
    async with FakeOpenAI(rule=lambda *_: fault) as server:
        one = judge(server)
        score = await scored(JudgeMetric("q", one), SAMPLE, one)
    assert (score.outcome, score.value, score.details["category"]) == (Outcome.ERROR, None, category)


async def test_a_verdict_that_is_late_is_an_error():
    async with FakeOpenAI(rule=lambda *_: Fault.hang()) as server:
        one = judge(server, timeout=0.1)
        score = await scored(JudgeMetric("q", one), SAMPLE, one)
    assert (score.outcome, score.details["category"]) == (Outcome.ERROR, "model_timeout")


async def test_a_reply_cut_at_its_token_limit_is_unreadable():
    async with FakeOpenAI(lambda _: {"content": said(5) + " But", "finish_reason": "length"}) as server:
        one = judge(server, max_retries=0)
        score = await scored(JudgeMetric("q", one), SAMPLE, one)
    assert score.outcome is Outcome.UNSCORED


async def test_structured_output_sends_a_schema_and_takes_nothing_else():
    replies = iter([f"Well: {said(2)}", said(2)])
    async with FakeOpenAI(lambda _: next(replies)) as server:
        one = judge(server, structured=True)
        score = await scored(JudgeMetric("q", one, scale=Scale(low=0, high=2)), SAMPLE, one)
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"] == {"type": "number", "minimum": 0.0, "maximum": 2.0}
    assert (score.value, server.count) == (1.0, 2)


async def test_a_judge_may_speak_the_completions_protocol():
    async with FakeOpenAI(lambda _: said(5)) as server:
        one = judge(server, client_settings={"url": server.completions_url, "protocol": "completions"})
        assert (await scored(JudgeMetric("q", one), SAMPLE, one)).value == 1.0
        assert server.bodies[0]["prompt"].startswith(prompts.SYSTEM)
        with pytest.raises(UsageError, match="response_format"):
            judge(
                server,
                client_settings={"url": server.completions_url, "protocol": "completions"},
                structured=True,
            )


async def test_both_orders_are_asked_averaged_and_kept():
    def answer(body):
        text = prompt_text(body)
        return said(5 if text.index("--- ANSWER") < text.index("--- EXPECTED") else 1)

    async with FakeOpenAI(answer) as server:
        one = judge(server)
        score = await scored(JudgeMetric("q", one, swap_check=True), SAMPLE, one)
    assert score.value == 0.5
    assert score.details["consistent"] == {"verdict": False}
    assert {key: verdict["score"] for key, verdict in score.details["verdicts"].items()} == {"first": 1, "swapped": 5}


async def test_the_expected_answer_is_hidden_where_asked():
    async with FakeOpenAI(lambda _: said(5)) as server:
        one = judge(server)
        await scored(JudgeMetric("q", one, reference_free=True), SAMPLE, one)
    assert "Paris" not in prompt_text(server.bodies[0])


@pytest.mark.parametrize(
    ("aggregation", "scores", "value"),
    [
        ("mean", (1, 2, 5), 5 / 12),
        ("median", (1, 2, 5), 0.25),
        ("majority", (5, 2, 5), 1.0),
        ("majority", (1, 2, 5), None),
    ],
)
async def test_an_ensemble_makes_one_score_of_several(aggregation, scores, value):
    by_judge = dict(zip("abc", scores, strict=True))
    async with FakeOpenAI(lambda body: said(by_judge[body["model"]])) as server:
        judges = [judge(server, name) for name in by_judge]
        score = await scored(EnsembleMetric("e", judges, aggregation=aggregation), SAMPLE, *judges)
    assert score.value == (None if value is None else pytest.approx(value))
    assert score.details["ratings"] == {"verdict": by_judge}
    if value is None:
        assert (score.outcome, score.details["category"]) == (Outcome.UNSCORED, "judge_disagreement")
    assert score.details["agreement"]["verdict"] == pair_agreement(scores)


async def test_an_ensemble_of_fewer_judges_is_no_measurement():
    async with FakeOpenAI(
        lambda body: said(4), rule=lambda body, _: Fault(status=503) if body["model"] == "b" else None
    ) as server:
        judges = [judge(server, "a"), judge(server, "b")]
        score = await scored(EnsembleMetric("e", judges), SAMPLE, *judges)
    assert (score.outcome, score.value, score.details["category"]) == (Outcome.ERROR, None, "server_error")
    assert score.details["verdicts"]["a"]["score"] == 4


@pytest.mark.parametrize(
    ("prefers", "value", "consistent"),
    [("Rome", 1.0, True), ("Paris", 0.0, True), ("first", 0.5, False), ("tie", 0.5, True)],
)
async def test_a_preference_must_hold_in_both_orders(prefers, value, consistent):
    def answer(body):
        text = prompt_text(body)
        if prefers == "tie":
            return '{"verdict": "tie"}'
        first = text[text.index("--- ANSWER A") : text.index("--- ANSWER B")]
        return json.dumps({"verdict": "A" if prefers == "first" or prefers in first else "B"})

    async with FakeOpenAI(answer) as server:
        one = judge(server)
        score = await scored(PairwiseMetric("p", one, ExpectedBaseline()), SAMPLE, one)
    assert (score.value, score.details["consistent"]) == (value, consistent)
    assert set(score.details["verdicts"]) == {"answer first", "baseline first"}


async def test_without_swap_check_one_order_is_asked_that_the_texts_choose():
    seen = set()
    async with FakeOpenAI(lambda _: '{"verdict": "A"}') as server:
        one = judge(server)
        metric = PairwiseMetric("p", one, ExpectedBaseline(), swap_check=False)
        for number in range(12):
            sample = JudgedSample(response=f"answer {number}", target="Paris")
            seen.add((await metric.score(sample)).value)
        await one.client.close()
    assert (server.count, seen) == (12, {0.0, 1.0})


async def test_a_problem_without_an_expected_answer_cannot_be_compared():
    async with FakeOpenAI() as server:
        one = judge(server)
        score = await scored(PairwiseMetric("p", one, ExpectedBaseline()), JudgedSample(response="x"), one)
    assert (score.outcome, score.details["category"], server.count) == (Outcome.UNSCORED, "unscorable", 0)


async def test_what_was_scored_before_is_not_asked_again():
    async with FakeOpenAI(lambda body: said(2) if body["model"] == "a" else "well") as server:
        judges = [judge(server, "a", max_retries=0), judge(server, "b", max_retries=0)]
        metric = EnsembleMetric("e", judges)
        first = await metric.score(SAMPLE)
        server.answer, before = lambda _: said(4), server.count
        again = JudgedSample(response="It is Rome.", target="Paris", earlier=first)
        second = await scored(metric, again, *judges)
    assert [body["model"] for body in server.bodies[before:]] == ["b"]
    assert (second.value, second.details["judge_usage"]["requests"]) == (0.5, 3)


@pytest.mark.parametrize(
    ("reply", "settings", "value", "outcome"),
    [
        ("0.25", {}, 0.25, "scored"),
        ("reward: -1", {"score_range": (-2, 2)}, 0.25, "scored"),
        ("0.25", {"threshold": 0.25}, 1.0, "scored"),
        (
            "helpfulness:3,correctness:4",
            {"mode": "multi_aspect", "aspect": "correctness", "score_range": (0, 4)},
            1.0,
            "scored",
        ),
        ("7", {}, None, "unscored"),
        ("about 0.5", {}, None, "unscored"),
        ("a:1,b:0", {}, None, "unscored"),
    ],
)
async def test_a_reward_models_reply_is_numbers_and_nothing_else(reply, settings, value, outcome):
    async with FakeOpenAI(lambda _: reply) as server:
        one = client(server)
        score = await RewardModelMetric("r", one, max_retries=0, **settings).score(SAMPLE)
        await one.close()
    assert (score.value, score.outcome) == (value, outcome)


async def test_a_reward_model_compares_with_the_expected_answer():
    async with FakeOpenAI(lambda body: "0.9" if body["messages"][-1]["content"] == "Paris" else "0.2") as server:
        one = client(server)
        score = await RewardModelMetric("r", one, mode="pairwise").score(SAMPLE)
        await one.close()
    assert score.value == 0.0


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=200))
def test_any_reply_of_a_reward_model_is_numbers_or_none(reply):
    assert all(isinstance(value, float) for value in read_rewards(reply).values())


@pytest.mark.parametrize("reply", ['{"a": 1' + "0" * 400 + "}", '{"a": 1, "A": 2}', '{"a": [1]}', '{"a": "1"}', "{}"])
def test_a_reward_that_is_no_number_or_not_the_only_one_is_none(reply):
    assert read_rewards(reply) == {}


def test_identity_holds_what_changes_a_verdict_and_nothing_else():
    server = FakeOpenAI(port=1)
    base = JudgeMetric("q", judge(server)).identity()
    same = [JudgeMetric("q", judge(server, max_retries=9, timeout=3))]
    other = [
        JudgeMetric("q", judge(server, "k")),
        JudgeMetric("q", judge(server, temperature=1)),
        JudgeMetric("q", judge(server, system_prompt="x")),
        JudgeMetric("q", judge(server, structured=True)),
        JudgeMetric("q", judge(server), rubric="other"),
        JudgeMetric("q", judge(server), scale=Scale(low=0, high=1)),
        JudgeMetric("q", judge(server), swap_check=True),
        JudgeMetric("q", judge(server), reference_free=True),
        EnsembleMetric("q", [judge(server), judge(server, "k")]),
    ]
    assert all(metric.identity() == base for metric in same)
    identities = [json.dumps(metric.identity()) for metric in other]
    assert json.dumps(base) not in identities
    assert len(set(identities)) == len(identities)
    assert all(isinstance(metric, Metric) for metric in other)
    assert len({metric.version for metric in other}) == len(other)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=200), st.text(max_size=200))
def test_an_answer_cannot_close_its_part_of_the_prompt(question, answer):
    prompt = prompts.grading_prompt(question, [("ANSWER", answer)], "rubric", Scale(), structured=False)
    mark = prompt.rsplit("--- END OF ANSWER ", 1)[1].split(" ")[0]
    assert prompt.count(f"--- END OF ANSWER {mark} ---") == 1
    assert mark not in answer


def test_a_conversation_is_shown_with_its_roles_and_images_by_name():
    turns = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "What?"}],
        },
    ]
    assert prompts.conversation(turns) == "system: Be brief.\n\nuser: [image]\nWhat?"


def test_a_question_to_a_judge_is_checked_where_it_is_asked():
    asked = needs_judge(labels={"yes": 1, "no": 0})
    assert asked["outcome"] == "unscored"
    assert questions_of(asked) == {"": JudgeQuestion(labels={"yes": 1, "no": 0})}
    assert questions_of({}) == {}
    for wrong in ({"labels": {"yes": 1, "no": 1}}, {"labels": {"a": 0, "b": 1}, "low": 0}, {"low": 5, "high": 1}):
        with pytest.raises(UsageError):
            needs_judge(**wrong)
    with pytest.raises(UsageError):
        needs_judge({})
    assert judge_score(ScorerInput("x")) is None
    assert MetricScore(value=1.0).outcome is Outcome.SCORED
