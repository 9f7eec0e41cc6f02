"""A benchmark measured as its config says: each metric with its own outcome, the reward that of the primary one."""

import pytest

from nel.config.scoring import CustomMetric
from nel.core.errors import UsageError
from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
from nel.environments.byob import ByobEnvironment
from nel.environments.configured import ScorerMetric, build_metric
from nel.environments.definition import BenchmarkDefinition
from nel.environments.scored import ScoredEnvironment
from nel.observability.records import AttemptRecord, MetricScore, ModelResponse, Outcome
from nel.scoring import JudgeQuestion, exact_match, judge_score, needs_judge
from nel.scoring.judging.judge import Grader
from nel.scoring.judging.scale import Scale
from nel.scoring.judging.verdict import Verdict


class Fixed:
    """A metric that says what it was told to say, and remembers what it saw."""

    def __init__(self, name="m", value=0.25, outcome=Outcome.SCORED, fails=False):
        self.name, self.value, self.outcome, self.fails = name, value, outcome, fails
        self.seen = []

    def identity(self):
        return {"metric": "fixed", "value": self.value}

    async def score(self, sample):
        self.seen.append(sample)
        if self.fails:
            raise RuntimeError("broken")
        category = {} if self.outcome is Outcome.SCORED else {"category": "judge_unparsable", "error": "no verdict"}
        value = self.value if self.outcome is Outcome.SCORED else None
        return MetricScore(value=value, outcome=self.outcome, version="3", details=category)


class Teacher(Grader):
    """Says `label` to every question."""

    def __init__(self, name="teacher", label="yes", verdict=None, **settings):
        super().__init__(name, **settings)
        self.said = verdict or Verdict(value=float(label == "yes"), score=float(label == "yes"), label=label)
        self.asked = []

    async def _decide(self, measurement, name, question):
        self.asked.append((name, question))
        measurement.verdicts[name or "verdict"] = self.said
        return self.said


def benchmark(scorer=exact_match, **settings):
    rows = [{"question": "Capital of France?", "target": "Paris"}]
    return ByobEnvironment(
        BenchmarkDefinition(name="b", dataset=rows, prompt="{question} Now.", scorer=scorer, **settings)
    )


ATTEMPT = AttemptRecord(
    attempt="00",
    content="00",
    problem_idx=0,
    repeat=2,
    messages=[{"role": "user", "content": "Capital of France?"}],
    seed_metadata={"question": "Capital of France?"},
    model=ModelResponse(content="Paris"),
)


async def verdict(env, response="Paris", expected="Paris"):
    return await env.verify_attempt(ATTEMPT, response, expected)


async def test_every_metric_measures_and_the_primary_gives_the_reward():
    metric = Fixed()
    found = await verdict(ScoredEnvironment(benchmark(), [metric], primary="m"))
    assert (found.reward, found.outcome, found.scoring_method) == (0.25, Outcome.SCORED, "m")
    assert {name: score.value for name, score in found.metrics.items()} == {"default": 1.0, "m": 0.25}
    assert found.metrics["m"].version == "3"
    (sample,) = metric.seen
    assert (sample.prompt, sample.repeat, sample.target) == ("Capital of France?", 2, "Paris")
    assert sample.metadata == ATTEMPT.seed_metadata


async def test_the_benchmarks_own_score_can_stay_the_reward():
    found = await verdict(ScoredEnvironment(benchmark(), [Fixed()]))
    assert (found.reward, found.extracted_answer, found.scoring_method) == (1.0, "Paris", "exact_match")
    assert found.metrics["m"].value == 0.25


async def test_without_defaults_only_the_metrics_measure():
    found = await verdict(ScoredEnvironment(benchmark(), [Fixed()], primary="m", include_defaults=False))
    assert set(found.metrics) == {"m"}


async def test_a_metric_that_raises_is_an_error_of_its_own():
    found = await verdict(ScoredEnvironment(benchmark(), [Fixed(fails=True)]))
    assert (found.reward, found.metrics["m"].outcome) == (1.0, Outcome.ERROR)
    assert found.metrics["m"].details == {"category": "scorer_error", "error": "RuntimeError: broken"}


async def test_a_scorer_that_raises_leaves_the_other_metrics_alone():
    def broken(sample):
        raise KeyError("x")

    found = await verdict(ScoredEnvironment(benchmark(broken), [Fixed()], primary="m"))
    assert (found.reward, found.metrics["default"].outcome) == (0.25, Outcome.ERROR)
    found = await verdict(ScoredEnvironment(benchmark(broken), [Fixed()]))
    assert (found.reward, found.outcome, found.failure_category) == (None, Outcome.ERROR, "scorer_error")
    assert found.metrics["m"].value == 0.25


async def test_a_primary_metric_without_a_value_is_no_score():
    found = await verdict(ScoredEnvironment(benchmark(), [Fixed(outcome=Outcome.UNSCORED)], primary="m"))
    assert (found.reward, found.outcome, found.failure_category) == (None, Outcome.UNSCORED, "judge_unparsable")
    assert found.metrics["default"].value == 1.0


async def test_two_metrics_of_one_name_are_no_measurement():
    def scorer(sample):
        return {"correct": True, "m": 0.5}

    metric = Fixed()
    with pytest.raises(ValueError, match="a metric 'm' of its own"):
        await verdict(ScoredEnvironment(benchmark(scorer), [metric]))
    assert metric.seen == []


def judged(sample):
    answer = judge_score(sample)
    if answer is None:
        return needs_judge(rubric="Right?", labels={"yes": 1, "no": 0})
    return {"correct": answer.label == "yes", "said_no": answer.label == "no"}


def bare(sample):
    return needs_judge()


def several(sample):
    if judge_score(sample, "kind") is None:
        return needs_judge({name: JudgeQuestion(labels={"yes": 2, "no": -1}) for name in ("kind", "right")})
    return {"reward": sum(judge_score(sample, name).score for name in ("kind", "right"))}


async def test_a_judge_decides_what_the_scorer_asks():
    teacher = Teacher(label="no")
    env = ScoredEnvironment(benchmark(judged), [teacher], primary="teacher")
    found = await verdict(env)
    assert (found.reward, found.outcome) == (0.0, Outcome.SCORED)
    assert {name: score.value for name, score in found.metrics.items()} == {"teacher": 0.0, "said_no": 1.0}
    assert teacher.asked == [("", JudgeQuestion(rubric="Right?", labels={"yes": 1, "no": 0}))]
    assert found.metrics["teacher"].details["verdicts"]["verdict"]["label"] == "no"


async def test_a_scorer_that_does_not_look_leaves_its_reward_to_the_judge():
    found = await verdict(ScoredEnvironment(benchmark(bare), [Teacher(scale=Scale(low=0, high=1))], primary="teacher"))
    assert (found.reward, found.scoring_method) == (1.0, "judge")


async def test_several_questions_are_put_together_by_the_scorer():
    said = Verdict(value=1.0, score=2.0, label="yes")
    found = await verdict(ScoredEnvironment(benchmark(several), [Teacher(verdict=said)], primary="teacher"))
    assert found.reward == 4.0


@pytest.mark.parametrize(
    ("said", "outcome", "category"),
    [
        (Verdict(outcome=Outcome.UNSCORED, category="judge_unparsable", error="?"), "unscored", "judge_unparsable"),
        (Verdict(outcome=Outcome.ERROR, category="rate_limit", error="429"), "error", "rate_limit"),
    ],
)
async def test_a_judge_without_a_verdict_makes_no_score(said, outcome, category):
    found = await verdict(ScoredEnvironment(benchmark(judged), [Teacher(verdict=said)], primary="teacher"))
    assert (found.reward, found.outcome, found.failure_category) == (None, outcome, category)


async def test_a_judge_with_a_rubric_of_its_own_does_not_decide_by_the_benchmarks():
    teacher = Teacher(rubric="mine")
    found = await verdict(ScoredEnvironment(benchmark(judged), [teacher], primary="teacher"))
    assert (found.outcome, teacher.asked) == (Outcome.UNSCORED, [])
    assert "so does the metric 'teacher'" in found.scoring_details["error"]
    free = Teacher("free")
    found = await verdict(ScoredEnvironment(benchmark(judged), [teacher, free], primary="free"))
    assert (found.reward, found.metrics["teacher"].value) == (1.0, 1.0)


def test_a_benchmark_that_needs_a_judge_is_refused_without_one():
    with pytest.raises(UsageError, match="names none"):
        ScoredEnvironment(benchmark(judged), [Fixed()])
    ScoredEnvironment(benchmark(judged), [Fixed()], primary="m", include_defaults=False)
    with pytest.raises(UsageError, match="primary metric 'x'"):
        ScoredEnvironment(benchmark(), [Fixed()], primary="x")


async def test_without_a_judge_the_answer_is_unscored_with_the_reason():
    found = await verdict(benchmark(judged))
    assert (found.reward, found.outcome) == (None, Outcome.UNSCORED)
    assert "needs a judge" in found.scoring_details["reason"]


async def test_the_foreign_form_of_asking_for_a_judge_is_no_zero():
    def foreign(sample):
        return {"correct": False, "needs_judge": True}

    assert (await verdict(benchmark(foreign))).outcome is Outcome.UNSCORED


async def test_everything_but_the_measuring_is_the_benchmarks():
    inner = benchmark(generation={"max_tokens": 9}, endpoint_type="completions")
    env = ScoredEnvironment(inner, [Fixed()])
    await env.prepare()
    assert await env.dataset_size() == 1
    assert (await env.seed(0)).prompt == "Capital of France? Now."
    assert (env.name, env.generation, env.endpoint_type) == ("b", {"max_tokens": 9}, "completions")
    assert env.data_identity() == inner.data_identity()
    assert (await env.verify("Paris", "Paris", metadata={})).reward == 1.0
    await env.close()


def test_the_identity_has_every_metric_and_the_primary():
    inner = benchmark()
    one = ScoredEnvironment(inner, [Fixed()])
    same = ScoredEnvironment(inner, [Fixed()])
    assert one.scoring_identity() == same.scoring_identity()
    for other in (
        ScoredEnvironment(inner, [Fixed(value=0.5)]),
        ScoredEnvironment(inner, [Fixed("n")]),
        ScoredEnvironment(inner, [Fixed()], primary="m"),
        ScoredEnvironment(inner, [Fixed()], primary="m", include_defaults=False),
    ):
        assert other.scoring_identity() != one.scoring_identity()


async def test_a_metric_of_ones_own_may_be_a_class_or_a_scorer(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "class Length:\n"
        "    def __init__(self, most=1): self.most = most\n"
        "    def score(self, sample): return {'reward': len(sample.response) / self.most, 'extracted': 'x'}\n"
        "def same(sample): return sample.response == sample.config['as']\n"
        "def other(a, b): return 1\n"
    )

    def spec(name, **config):
        return CustomMetric(type="custom", name=name, class_path=f"{file}:{name}", config=config)

    env = ScoredEnvironment(
        benchmark(), [build_metric(spec("Length", most=10), {}), build_metric(spec("same", **{"as": "Paris"}), {})]
    )
    found = await verdict(env)
    assert (found.metrics["Length"].value, found.metrics["same"].value) == (0.5, 1.0)
    assert found.metrics["Length"].details["extracted"] == "x"
    assert set(env.kept_files()) >= {"mine.py"}
    with pytest.raises(UsageError, match="least"):
        build_metric(spec("Length", least=1), {})
    with pytest.raises(UsageError, match="cannot be called"):
        build_metric(spec("other"), {})


async def test_an_environment_that_knows_nothing_of_metrics_measures_again_in_its_own_way():
    class Plain(EvalEnvironment):
        name = "plain"

        async def dataset_size(self):
            return 1

        async def seed(self, idx):
            return SeedResult(prompt="x")

        async def verify(self, response, expected, sandbox=None, *, metadata, model_response=None):
            return VerifyResult(reward=1.0)

    assert (await Plain().verify_again(ATTEMPT, "x", None, {"m": MetricScore(value=0.0)})).reward == 1.0
    metric = ScorerMetric("e", exact_match)
    assert (await verdict(ScoredEnvironment(Plain(), [metric], primary="e"), "Rome")).reward == 0.0


def _asks(sample):
    return needs_judge()


def by_helper(sample):
    return _asks(sample)


@pytest.mark.parametrize(("scorer", "needs"), [(exact_match, False), (bare, True), (judged, True), (by_helper, True)])
def test_a_scorer_that_may_ask_for_a_judge_is_known_by_its_code(scorer, needs):
    """And not by its file, which may hold other benchmarks: this one does."""
    assert benchmark(scorer).may_need_judge is needs
    assert benchmark(lambda sample: True).may_need_judge is False
