"""A run with judges over HTTP: nonsense and outages are no scores, and a resume asks only for what is missing."""

import json
import re
import textwrap

import pytest
from openai_faults import Fault
from openai_server import FakeOpenAI, prompt_text

from nel.config.load import load_config
from nel.core.errors import ExitCode, UsageError
from nel.observability.records import ScoreRecord
from nel.orchestration.rescore import rescore
from nel.orchestration.suite import run_local

BENCHMARK = """
from nel import benchmark, scorer
from nel.scoring import exact_match

@benchmark(name="echo", dataset="echo.jsonl", prompt="{question}", target_field="answer")
@scorer
def echo(sample):
    return exact_match(sample)
"""

JUDGED = """
from nel import benchmark, scorer
from nel.scoring import judge_score, needs_judge

@benchmark(name="echo", dataset="echo.jsonl", prompt="{question}", target_field="answer")
@scorer
def echo(sample):
    verdict = judge_score(sample)
    if verdict is None:
        return needs_judge(rubric="Same word?", labels={"CORRECT": 1, "WRONG": 0, "NOT_ATTEMPTED": 0})
    return {"correct": verdict.label == "CORRECT", "not_attempted": verdict.label == "NOT_ATTEMPTED"}
"""

CONFIG = """
services:
  m: {type: api, url: MODEL, model: pupil, proxy: {max_retries: 0}}
  j: {type: api, url: JUDGE, model: teacher, proxy: {max_retries: 0}, prices: {prompt: 1, completion: 10}}
benchmarks:
  - name: HERE/echo.py
    solver: {type: simple, service: m}
    scoring: SCORING
output: {dir: HERE/run}
"""
ONE_JUDGE = "{metrics: [{type: judge, name: quality, service: j, max_retries: 1}]}"
ROWS = 8


def graded(body):
    """5 for the words with an even number, 1 for the others, as a judge says it."""
    number = int(re.search(r"word(\d+)", prompt_text(body))[1])
    return f'Fine. {{"reasoning": "even or odd", "score": {1 if number % 2 else 5}}}'


@pytest.fixture
def model():
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def judge():
    with FakeOpenAI(graded) as server:
        yield server


@pytest.fixture
def go(tmp_path, model, judge):
    rows = [{"question": f"word{n}", "answer": f"word{n}"} for n in range(ROWS)]
    (tmp_path / "echo.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(scoring=ONE_JUDGE, *, benchmark=BENCHMARK, config=CONFIG, **options):
        (tmp_path / "echo.py").write_text(benchmark)
        text = textwrap.dedent(config).replace("SCORING", scoring).replace("HERE", str(tmp_path))
        text = text.replace("MODEL", model.chat_url).replace("JUDGE", judge.chat_url)
        return run_local(load_config(text, use_defaults=False), **options)

    return run


def bundle_of(result):
    assert not result.failed, result.failed
    (bundle,) = result.bundles.values()
    return json.loads(
        json.dumps(bundle, default=lambda item: {name: getattr(item, name) for name in item.__struct_fields__})
    )


def scores_of(tmp_path):
    return [
        ScoreRecord.from_json(line) for line in (tmp_path / "run" / "echo" / "results.jsonl").read_bytes().splitlines()
    ]


def test_a_judge_grades_each_answer_and_its_cost_is_told(go, judge, tmp_path):
    bundle = bundle_of(go())
    assert bundle["benchmark"]["scores"]["pass@1"]["value"] == 0.5  # 5 of 5 is 1, 1 of 5 is 0
    assert bundle["benchmark"]["scores"]["scorer:default"]["value"] == 1.0
    usage = bundle["judges"]["quality"]
    assert (usage["requests"], usage["unreadable"]) == (ROWS, 0)
    assert usage["cost"] == pytest.approx((usage["prompt_tokens"] + 10 * usage["completion_tokens"]) / 1e6)
    assert usage["mean_latency_ms"] > 0
    prompt = prompt_text(judge.bodies[0])
    assert all(part in prompt for part in ("--- QUESTION", "--- ANSWER", "--- EXPECTED ANSWER", "Rubric:"))
    assert judge.bodies[0]["temperature"] == 0
    (score, *_) = scores_of(tmp_path)
    assert score.scorer_rewards["quality"].details["score"] in (1.0, 5.0)
    assert score.scorer_rewards["quality"].version


def test_nonsense_is_unscored_and_a_resume_asks_the_judge_alone_for_what_is_missing(go, model, judge, tmp_path):
    nonsense = {"word2", "word3"}
    judge.answer = lambda body: "Four out of 5, I think." if _word(body) in nonsense else graded(body)
    first = bundle_of(go())
    assert (first["counts"]["scored"], first["counts"]["unscored"], first["counts"]["error"]) == (6, 2, 0)
    assert first["benchmark"]["scores"]["pass@1"]["value"] == 0.5  # of the six
    assert judge.count == 6 + 2 * 2
    kept = [score for score in scores_of(tmp_path) if score.outcome == "unscored"]
    assert [score.failure_category for score in kept] == ["judge_unparsable"] * 2
    assert kept[0].scorer_rewards["quality"].details["verdicts"]["verdict"]["reply"] == "Four out of 5, I think."
    judge.answer, asked, before = graded, model.count, judge.count
    second = bundle_of(go(resume=True))
    assert (model.count - asked, judge.count - before) == (0, 2)
    assert second["counts"]["scored"] == ROWS
    assert second["judges"]["quality"]["unreadable"] == 4
    go(resume=True)
    assert (model.count - asked, judge.count - before) == (0, 2)


NONSENSE = {
    "word0": "",
    "word1": "I would say 4 of 5.",
    "word2": '{"score": 9}',
    "word3": '{"score": "good"}',
    "word4": '{"score": 4, "score": 2}',
    "word5": '{"reasoning": "fine"',
}


def test_nonsense_of_every_kind_and_outages_are_told_apart_and_mended_by_a_resume(go, model, judge, tmp_path):
    judge.answer = lambda body: NONSENSE.get(_word(body), graded(body))
    judge.rule = lambda body, _n: Fault(status=500) if _word(body) == "word6" else None
    first = bundle_of(go())
    assert first["counts"] | {"planned": 0, "attempted": 0} == {
        "planned": 0, "attempted": 0, "scored": 1, "unscored": len(NONSENSE), "error": 1,
    }  # fmt: skip
    assert first["benchmark"]["scores"]["pass@1"]["value"] == 0.0  # word7 alone was graded, and is odd
    kept = {score.extracted_answer or score.expected_answer: score for score in scores_of(tmp_path)}
    for word, said in NONSENSE.items():
        verdict = kept[word].scorer_rewards["quality"].details["verdicts"]["verdict"]
        assert (verdict.get("reply", ""), verdict["unreadable"]) == (said, [said])
    judge.answer, judge.rule = graded, None
    asked, before = model.count, judge.count
    second = bundle_of(go(resume=True))
    assert (model.count - asked, judge.count - before) == (0, len(NONSENSE) + 1)
    assert {_word(body) for body in judge.bodies[before:]} == {*NONSENSE, "word6"}
    assert (second["counts"]["scored"], second["benchmark"]["scores"]["pass@1"]["value"]) == (ROWS, 0.5)


def test_the_report_tells_what_judges_took_and_how_far_they_agree(go, judge, tmp_path):
    judge.answer = lambda body: f'{{"score": {2 + int(_word(body)[-1]) % 3}}}' if body["model"] == "k" else graded(body)
    config = CONFIG.replace("benchmarks:", "  k: {type: api, url: JUDGE, model: k}\nbenchmarks:")
    go("{metrics: [{type: ensemble_judge, name: both, services: [j, k]}]}", config=config)
    report = (tmp_path / "run" / "report.md").read_text()
    assert "### Judges" in report
    assert re.search(rf"both +\| {2 * ROWS} replies, [\d,]+ tokens, cost \$0\.\d+, \S+ a reply", report)
    assert re.search(rf"Krippendorff's alpha +\| -?0\.\d+ \(interval ratings of j, k, {ROWS} each\)", report)


def _word(body):
    return re.search(r"word\d+", prompt_text(body))[0]


def test_a_retry_is_answered_by_no_cache(go, judge, tmp_path):
    replies = iter(["nonsense", *(["nonsense"] * 2), '{"score": 5}'])
    judge.answer = lambda body: next(replies) if _word(body) == "word0" else graded(body)
    config = CONFIG.replace("model: teacher,", "model: teacher, cache: HERE/cache,")
    first = bundle_of(go(config=config))
    assert (first["counts"]["unscored"], judge.count) == (1, ROWS + 1)
    second = bundle_of(go(config=config, resume=True))
    assert (second["counts"]["scored"], judge.count) == (ROWS, ROWS + 3)


def test_a_judge_that_is_down_is_an_error_of_its_metric_and_never_a_score(go, model, judge):
    judge.rule = lambda body, _n: Fault(status=503) if _word(body) == "word1" else None
    result = go()
    assert result.exit_code == ExitCode.DEGRADED
    bundle = bundle_of(result)
    assert (bundle["counts"]["scored"], bundle["counts"]["error"]) == (ROWS - 1, 1)
    assert bundle["failures"]["categories"]["server_error"]["count"] == 1
    assert bundle["benchmark"]["scores"]["scorer:default"]["value"] == 1.0
    judge.rule, before = None, model.count
    assert bundle_of(go(resume=True))["counts"]["scored"] == ROWS
    assert model.count == before


def test_a_further_metric_that_is_missing_is_measured_again_and_nothing_else_is(go, model, judge):
    scoring = """{primary: default, metrics: [
      {type: judge, name: quality, service: j, max_retries: 0},
      {type: judge, name: style, service: j, rubric: Is it STYLISH?, max_retries: 0}]}"""
    judge.answer = lambda body: "hm" if "STYLISH" in prompt_text(body) and _word(body) == "word4" else graded(body)
    first = bundle_of(go(scoring))
    assert first["counts"]["scored"] == ROWS
    assert first["benchmark"]["scores"]["pass@1"]["value"] == 1.0
    assert first["benchmark"]["scores"]["scorer:style"]["unscored"] == 1
    judge.answer, before = graded, judge.count
    second = bundle_of(go(scoring, resume=True))
    assert (judge.count - before, model.count) == (1, ROWS)
    assert "STYLISH" in prompt_text(judge.bodies[-1])
    assert second["benchmark"]["scores"]["scorer:style"]["scored"] == ROWS


def test_a_changed_rubric_asks_the_judge_again_and_the_model_not(go, model, judge):
    go()
    before = judge.count
    go(ONE_JUDGE.replace("name: quality", "name: quality, rubric: Be kind."), resume=True)
    assert (model.count, judge.count - before) == (ROWS, ROWS)
    go(resume=True)
    assert judge.count - before == ROWS


def test_a_benchmark_that_needs_a_judge_is_decided_by_it(go, judge, tmp_path):
    def answer(body):
        assert "Same word?" in prompt_text(body)
        return f'{{"verdict": "{"correct" if _word(body) != "word0" else "Not_Attempted"}"}}'

    judge.answer = answer
    bundle = bundle_of(go("{metrics: [{type: judge, name: grader, service: j}]}", benchmark=JUDGED))
    scores = bundle["benchmark"]["scores"]
    assert scores["pass@1"]["value"] == pytest.approx(7 / 8)
    assert scores["scorer:not_attempted"]["value"] == pytest.approx(1 / 8)
    assert scores["scorer:grader"]["value"] == pytest.approx(7 / 8)
    assert judge.count == ROWS


def test_a_benchmark_that_needs_a_judge_is_refused_without_one_before_any_request(go, model):
    with pytest.raises(UsageError, match="leaves its verdicts to a judge"):
        go("{}", benchmark=JUDGED)
    assert model.count == 0


def test_the_same_model_under_another_name_may_not_judge_itself(go, model, judge):
    config = CONFIG.replace("JUDGE, model: teacher", "MODEL, model: pupil")
    with pytest.raises(UsageError, match="would judge its own answers"):
        go(config=config)
    assert (model.count, judge.count) == (0, 0)
    allowed = ONE_JUDGE.replace("service: j", "service: j, allow_self_judge: true")
    model.answer = lambda body: '{"score": 3}' if "Rubric" in prompt_text(body) else prompt_text(body)
    assert bundle_of(go(allowed, config=config, resume=True))["benchmark"]["scores"]["mean_reward"]["value"] == 0.5


def test_an_ensemble_tells_how_far_its_judges_agree(go, judge):
    judge.answer = lambda body: f'{{"score": {5 if body["model"] == "strict" and _word(body) == "word0" else 2}}}'
    config = CONFIG.replace("benchmarks:", "  k: {type: api, url: JUDGE, model: strict}\nbenchmarks:")
    bundle = bundle_of(go("{metrics: [{type: ensemble_judge, name: both, services: [j, k]}]}", config=config))
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == pytest.approx((0.25 * 15 + 1.0) / 16)
    agreement = bundle["agreement"]["both"]
    assert (agreement["level"], agreement["ratings"], agreement["judges"]) == ("interval", ROWS, ["j", "k"])
    assert agreement["krippendorff_alpha"] == pytest.approx(0.0, abs=1e-9)


def test_an_ensemble_asks_again_only_the_judge_that_could_not_be_read(go, judge):
    config = CONFIG.replace("benchmarks:", "  k: {type: api, url: JUDGE, model: vague}\nbenchmarks:")
    scoring = "{metrics: [{type: ensemble_judge, name: both, services: [j, k], max_retries: 0}]}"
    judge.answer = lambda body: "well" if body["model"] == "vague" else '{"score": 4}'
    first = bundle_of(go(scoring, config=config))
    assert first["counts"]["unscored"] == ROWS
    before = judge.count
    judge.answer = lambda body: '{"score": 4}'
    assert bundle_of(go(scoring, config=config, resume=True))["counts"]["scored"] == ROWS
    assert {body["model"] for body in judge.bodies[before:]} == {"vague"}
    assert judge.count - before == ROWS


def test_two_answers_are_compared_in_both_orders(go, judge, model):
    """A judge that always prefers the first answer makes a tie of everything."""
    judge.answer = lambda body: '{"verdict": "A"}' if "ANSWER A" in prompt_text(body) else "the baseline's word"
    config = CONFIG.replace("benchmarks:", "  base: {type: api, url: JUDGE, model: baseline}\nbenchmarks:")
    scoring = "{metrics: [{type: pairwise_judge, name: wins, judge_service: j, baseline_service: base}]}"
    bundle = bundle_of(go(scoring, config=config))
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 0.5
    assert judge.count == 3 * ROWS
    assert {body["messages"][-1]["content"] for body in judge.bodies if body["model"] == "baseline"} == {
        f"word{n}" for n in range(ROWS)
    }


def test_a_reward_model_sees_the_conversation_with_the_answer(go, judge):
    judge.answer = lambda body: "reward: 0.75"
    bundle = bundle_of(go("{metrics: [{type: reward_model, name: rm, service: j}]}"))
    assert bundle["benchmark"]["scores"]["mean_reward"]["value"] == 0.75
    assert [message["role"] for message in judge.bodies[0]["messages"]] == ["user", "assistant"]


def test_scorers_and_code_of_ones_own_measure_too(go, tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Length:\n"
        "    def __init__(self, most): self.most = most\n"
        "    async def score(self, sample): return min(1.0, len(sample.prompt) / self.most)\n"
    )
    scoring = f"""{{primary: length, include_defaults: false, metrics: [
      {{type: scorer, name: fuzzy_match}},
      {{type: custom, name: length, class_path: '{tmp_path}/mine.py:Length', config: {{most: 10}}}}]}}"""
    bundle = bundle_of(go(scoring))
    scores = bundle["benchmark"]["scores"]
    assert scores["mean_reward"]["value"] == pytest.approx(0.5)
    assert scores["scorer:fuzzy_match"]["value"] == 1.0
    assert "scorer:default" not in scores
    assert (tmp_path / "run" / "echo" / "code" / "mine.py").exists()


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("{type: scorer, name: exact_mach}", "Did you mean 'exact_match'"),
        ("{type: scorer, name: exact_match, params: {colour: red}}", "cannot be called with these params"),
        ("{type: custom, name: c, class_path: 'os.path:joyn'}", "joyn"),
        ("{type: judge, name: q, service: j, rubric_file: no/such.md}", "rubric_file no/such.md"),
    ],
)
def test_what_cannot_measure_is_refused_before_any_request(go, model, metric, message):
    with pytest.raises(UsageError, match=message):
        go(f"{{metrics: [{metric}]}}")
    assert model.count == 0


def test_a_run_is_rescored_by_its_judge_without_the_model(go, model, judge, tmp_path):
    judge.answer = lambda body: "no idea"
    assert bundle_of(go())["counts"]["unscored"] == ROWS
    judge.answer, asked = graded, model.count
    (change,) = rescore(tmp_path / "run")
    assert (change.before, change.after, model.count - asked) == (None, 0.5, 0)
    before = judge.count
    rescore(tmp_path / "run")
    assert judge.count == before


def test_a_run_is_rescored_by_another_judge(go, model, judge, tmp_path):
    go("{}")
    asked = model.count
    text = CONFIG.replace("SCORING", ONE_JUDGE).replace("HERE", str(tmp_path))
    (tmp_path / "judged.yaml").write_text(text.replace("MODEL", model.chat_url).replace("JUDGE", judge.chat_url))
    (change,) = rescore(tmp_path / "run", config=tmp_path / "judged.yaml")
    assert (change.before, change.after, change.changed, model.count - asked) == (1.0, 0.5, True, 0)


def test_a_command_in_a_sandbox_measures_by_its_exit_code(go, tmp_path):
    command = "grep -q 'word[246]' answer.txt && grep -q '\"target\": \"word' && echo seen"
    scoring = f"{{primary: check, metrics: [{{type: sandbox, name: check, command: {json.dumps(command)}}}]}}"
    config = CONFIG.replace("    scoring:", "    sandbox: {type: bwrap}\n    scoring:")
    bundle = bundle_of(go(scoring, config=config))
    assert bundle["benchmark"]["scores"]["pass@1"]["value"] == pytest.approx(3 / 8)
    assert bundle["benchmark"]["scores"]["scorer:default"]["value"] == 1.0
    details = [score.scorer_rewards["check"].details for score in scores_of(tmp_path)]
    assert min(map(str, details)) == "{'exit_code': 0, 'output': 'seen'}"
    (change,) = rescore(tmp_path / "run", overrides=["benchmarks[0].scoring.metrics[0].command=test -s answer.txt"])
    assert (change.after, change.changes.higher) == (1.0, 5)
    assert [line.partition(":")[0] for line in change.why] == ["metrics.check.command"]


def test_a_command_that_is_not_there_is_an_error_and_never_a_zero(go):
    scoring = "{metrics: [{type: sandbox, name: check, command: no-such-program}]}"
    result = go(scoring, config=CONFIG.replace("    scoring:", "    sandbox: {type: bwrap}\n    scoring:"))
    assert result.exit_code == ExitCode.DEGRADED
    bundle = bundle_of(result)
    assert (bundle["counts"]["scored"], bundle["counts"]["error"]) == (0, ROWS)
    assert bundle["failures"]["categories"]["sandbox_error"]["count"] == ROWS
