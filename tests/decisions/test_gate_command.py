"""`nel gate`: the tiers, the limits, and what keeps a release from being GO."""

import json
from xml.etree import ElementTree as ET

import pytest
from decision_runs import balanced_flips, make_run

from nel.decisions.gate import GateVerdict, Status, gate_runs
from nel.decisions.multiplicity import adjust
from nel.decisions.policy import load_policy
from nel.decisions.selection import Chosen, open_cells

GOOD, BAD = "good", "bad"
UNCLEAR = "unclear"


@pytest.fixture(scope="session")
def scores():
    """Baseline and candidate scores that pass, breach or say too little at an allowed drop of 0.05."""
    before, after = balanced_flips(400, 8)
    lost = [0.0] * 80 + before[80:]
    small = [1.0, 0.0] * 15
    return {
        GOOD: (before, after),
        BAD: (before, lost),
        UNCLEAR: (small, small),
        "looks bad": (small, [0.0, 0.0] * 2 + small[4:]),
    }


@pytest.fixture(scope="session")
def cells(scores, tmp_path_factory):
    """Each kind of evidence as a pair of runs of one benchmark; its name is the kind."""
    path = tmp_path_factory.mktemp("cells")
    pairs = {}
    for kind, both in scores.items():
        name = kind.replace(" ", "_")
        runs = [make_run(path / f"{name}_{place}", part, name=name) for place, part in enumerate(both)]
        pairs[name] = tuple(open_cells(run) for run in runs)
    return pairs


class Joined:
    """Several runs as one, which a suite would have made."""

    def __init__(self, parts):
        self.parts = parts
        self.path, self.manifest, self.kind = parts[0].view.path, parts[0].view.manifest, "models"

    def _of(self, cell):
        return next(part.view for part in self.parts if any(one is cell for one in part.cells))

    def cells(self):
        return [cell for part in self.parts for cell in part.cells]

    def units(self, cell):
        return self._of(cell).units(cell)

    def detail(self, cell, unit):
        return self._of(cell).detail(cell, unit)


def suite(cells, *names):
    """The cells called `names` as two runs."""
    joined = [Joined([cells[name][side] for name in names]) for side in (0, 1)]
    return [Chosen(view.path, view, view.cells()) for view in joined]


@pytest.fixture
def judge(cells, tmp_path):
    def judged(policy, *names):
        file = tmp_path / "policy.yaml"
        file.write_text(policy)
        return gate_runs(*suite(cells, *names), load_policy(file))

    return judged


def policy(**tiers):
    lines = [f"  {name}: {{tier: {tier}, max_drop: 0.05}}" for name, tier in tiers.items()]
    return "version: 1\nbenchmarks:\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("tier", ["critical", "supporting"])
def test_a_breach_stops_the_release_in_either_gated_tier(judge, tier):
    report = judge(policy(good="critical", bad=tier), "good", "bad")
    assert report.verdict is GateVerdict.NO_GO
    assert [one.status for one in report.benchmarks] == [Status.PASS, Status.BREACH]
    assert "bad" in report.verdict_reasons[0]


def test_advisory_never_blocks(judge):
    report = judge(policy(good="critical", bad="advisory"), "good", "bad")
    assert report.verdict is GateVerdict.GO
    assert report.benchmarks[1].status is Status.BREACH


def test_critical_needs_proof_and_supporting_the_benefit_of_the_doubt(judge):
    critical = judge(policy(good="critical", unclear="critical"), "good", "unclear")
    supporting = judge(policy(good="critical", unclear="supporting"), "good", "unclear")
    assert critical.verdict is GateVerdict.INCONCLUSIVE
    assert supporting.verdict is GateVerdict.GO
    assert "unclear" in supporting.verdict_reasons[1], "and it is named all the same"


def test_a_supporting_benchmark_that_looks_bad_holds_it_up(judge):
    report = judge(policy(good="critical", looks_bad="supporting"), "good", "looks_bad")
    assert report.benchmarks[1].status is Status.INSUFFICIENT
    assert report.verdict is GateVerdict.INCONCLUSIVE


@pytest.mark.parametrize("text", [policy(bad="advisory"), policy(unclear="supporting")])
def test_a_gate_that_gated_nothing_is_not_go(judge, text):
    name = "bad" if "bad" in text else "unclear"
    report = judge(text, name)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert "nothing was gated" in report.verdict_reasons[0]


def test_a_missing_benchmark_is_named_and_never_go(judge):
    critical = judge(policy(good="critical", god="critical"), "good")
    assert critical.verdict is GateVerdict.NO_GO
    assert critical.missing == ["god"]
    assert "did the policy mean good?" in critical.benchmarks[1].reasons[0]
    assert judge(policy(good="critical", god="supporting"), "good").verdict is GateVerdict.INCONCLUSIVE
    assert judge(policy(good="critical", god="advisory"), "good").verdict is GateVerdict.GO


def test_what_the_policy_does_not_name_is_judged_by_its_defaults(judge):
    report = judge("version: 1\ndefaults: {max_drop: 0.05}\n", "good", "bad")
    assert [one.listed for one in report.benchmarks] == [False, False]
    assert report.verdict is GateVerdict.NO_GO
    assert "good is not in the policy: judged by its defaults" in report.warnings


def test_a_degraded_run_cannot_pass(tmp_path, nel):
    before = [1.0] * 400
    baseline = make_run(tmp_path / "a", before)
    candidate = make_run(tmp_path / "b", [None] * 80 + before[80:], max_error_rate=0.05)
    (tmp_path / "p.yaml").write_text(policy(graded="critical"))
    code, out, _ = nel("gate", baseline, candidate, "--policy", tmp_path / "p.yaml")
    assert code == 2
    assert "degraded: 80 of 400 planned attempts ended in errors" in out


def test_fewer_than_ten_pairs_are_no_evidence(tmp_path, nel):
    runs = [make_run(tmp_path / name, [1.0] * 9) for name in "ab"]
    (tmp_path / "p.yaml").write_text("benchmarks: {graded: {tier: critical, max_drop: 1}}")
    code, out, _ = nel("gate", *runs, "-p", tmp_path / "p.yaml", "--format", "json")
    assert (code, json.loads(out)["benchmarks"][0]["status"]) == (2, "INSUFFICIENT_EVIDENCE")


RELATIVE = """
benchmarks:
  low: {{tier: critical, max_drop: 0.5, max_relative_drop: 0.3, relative_guard_below: {guard}}}
"""


@pytest.mark.parametrize(("guard", "status", "code"), [(0.3, "BREACH", 1), (0.1, "PASS", 0)])
def test_the_relative_limit_guards_low_scores(tmp_path, nel, guard, status, code):
    before = [1.0] * 80 + [0.0] * 320
    runs = make_run(tmp_path / "a", before, name="low"), make_run(tmp_path / "b", [0.0] * 50 + before[50:], name="low")
    (tmp_path / "p.yaml").write_text(RELATIVE.format(guard=guard))
    found, out, _ = nel("gate", *runs, "-p", tmp_path / "p.yaml", "--format", "json")
    one = json.loads(out)["benchmarks"][0]
    assert (found, one["status"]) == (code, status)
    assert one["relative_drop"] == pytest.approx(50 / 80)


def test_any_metric_can_be_gated(tmp_path, nel):
    before = [[1.0, 1.0]] * 100 + [[0.0, 1.0]] * 100
    after = [[1.0, 1.0]] * 100 + [[0.0, 0.0]] * 100
    runs = make_run(tmp_path / "a", before), make_run(tmp_path / "b", after)
    for metric, drop in (("pass@2", 0.5), ("pass^2", 0.0), ("mean_reward", 0.25), ("pass@1", 0.25)):
        (tmp_path / "p.yaml").write_text(
            f"benchmarks: {{graded: {{tier: critical, max_drop: 0.05, metric: {metric}}}}}"
        )
        code, out, _ = nel("gate", *runs, "-p", tmp_path / "p.yaml", "--format", "json")
        one = json.loads(out)["benchmarks"][0]
        assert one["baseline_score"] - one["candidate_score"] == pytest.approx(drop)
        assert code == (1 if drop else 0), metric
    limits = "metric: 'scorer:loss', direction: lower_is_better"
    (tmp_path / "p.yaml").write_text(f"benchmarks: {{graded: {{tier: critical, {limits}}}}}")
    assert nel("gate", *runs, "-p", tmp_path / "p.yaml")[0] == 1


def test_many_benchmarks_are_corrected_together(judge):
    alone = judge(policy(good="critical"), "good").benchmarks[0]
    among = judge(policy(good="critical", bad="critical", unclear="supporting"), "good", "bad", "unclear")
    first, second, third = among.benchmarks
    plain = [alone.p_within, 1.0, 1.0]
    assert first.p_within == pytest.approx(adjust(plain)[0])
    assert second.p_beyond < 0.025 < third.p_beyond


def test_junit_says_which_benchmark_stopped_it(tmp_path, nel, cells):
    (tmp_path / "p.yaml").write_text(policy(bad="critical", other="advisory"))
    baseline, candidate = cells["bad"]
    code, out, _ = nel("gate", baseline.path, candidate.path, "-p", tmp_path / "p.yaml", "--format", "junit")
    assert code == 1
    tree = ET.fromstring(out)
    assert (tree.get("tests"), tree.get("failures"), tree.get("skipped")) == ("3", "2", "1")
    assert tree.find("testcase[@name='bad']/failure").get("type") == "BREACH"
    assert tree.find("testcase[@name='verdict']/failure").get("type") == "NO-GO"


def test_the_exit_code_is_the_verdict_unless_told_otherwise(tmp_path, nel, cells):
    (tmp_path / "p.yaml").write_text(policy(bad="critical"))
    runs = [side.path for side in cells["bad"]]
    assert nel("gate", *runs, "-p", tmp_path / "p.yaml")[0] == 1
    assert nel("gate", *runs, "-p", tmp_path / "p.yaml", "--no-strict")[0] == 0
    nel("gate", *runs, "-p", tmp_path / "p.yaml", "-o", tmp_path / "g.json", "--report", tmp_path / "g.md")
    assert json.loads((tmp_path / "g.json").read_text())["verdict"] == "NO-GO"
    assert (tmp_path / "g.md").read_text().startswith("# NO-GO")


REFERENCE = """
version: 1
defaults:
  tier: supporting
  metric: mean_reward
  direction: higher_is_better
  max_drop: 0.015
benchmarks:
  mmlu_pro:
    tier: critical
    max_drop: 0.01
  humaneval:
    metric: pass@1
  aime_2025:
    tier: critical
    max_relative_drop: 0.02
    relative_guard_below: 0.20
  triviaqa:
    tier: advisory
"""


def test_a_policy_of_nemo_evaluator_is_read_unchanged(tmp_path):
    (tmp_path / "p.yaml").write_text(REFERENCE)
    read = load_policy(tmp_path / "p.yaml")
    assert {name: (str(one.tier), one.max_drop, one.metric) for name, one in read.benchmarks.items()} == {
        "mmlu_pro": ("critical", 0.01, "mean_reward"),
        "humaneval": ("supporting", 0.015, "pass@1"),
        "aime_2025": ("critical", 0.015, "mean_reward"),
        "triviaqa": ("advisory", 0.015, "mean_reward"),
    }
    assert read.benchmarks["aime_2025"].max_relative_drop == 0.02


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\nbenchmark: {}\n", "p.yaml:2: unknown key 'benchmark'"),
        ("benchmarks:\n  x:\n    max_dorp: 0.1\n", "p.yaml:3: unknown key 'max_dorp'"),
        ("benchmarks:\n  x:\n    tier: vital\n", "p.yaml:3: benchmarks.x.tier: 'vital' is not one of"),
        ("defaults:\n  max_drop: -1\n", "p.yaml:2: defaults.max_drop: -1 is no number of 0 or more"),
        ("defaults:\n  relative_guard_below: 3\n", "p.yaml:2: defaults.relative_guard_below"),
        ("version: 2\n", "p.yaml:1: version: version 2 is not known"),
        ("benchmarks: [x]\n", "p.yaml:1: benchmarks: is a list; it must be a map"),
        ("- x\n", "p.yaml:1: "),
    ],
)
def test_a_policy_that_says_something_else_is_refused_with_its_line(tmp_path, nel, text, said):
    (tmp_path / "p.yaml").write_text(text)
    code, _, err = nel("gate", tmp_path, tmp_path, "-p", tmp_path / "p.yaml")
    assert code == 64
    assert said in err


def test_a_policy_that_is_not_there_is_a_usage_error(tmp_path, nel):
    code, _, err = nel("gate", tmp_path, tmp_path, "-p", tmp_path / "none.yaml")
    assert code == 64
    assert "none.yaml" in err
