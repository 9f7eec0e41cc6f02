"""The built-in benchmarks and the URI schemes: what they are, in a table that can be printed without loading them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkInfo:
    """One line of `nel list`."""

    name: str
    description: str
    location: str
    """Where it is defined: `module:attr` or a file."""
    category: str = ""
    size: int | None = None
    """How many problems its own data have."""
    license: str = ""
    """Of the data."""
    data: str = ""
    """Where the data come from."""
    source: str = "built-in"
    """`built-in`, the distribution of a plug-in, or `file`."""
    metric: str = ""
    """What the reward is: `accuracy`, `F1`, ..."""
    cluster: str = ""
    """What problems are grouped by in intervals (a passage, a subject); empty where each stands for itself."""
    needs: tuple[str, ...] = ()
    """What a run needs beside a model: of `NEEDS`, or `extra NAME` for a package."""
    reference: str = ""
    """A published score: of which model, how it was asked, and where it is published."""

    def __post_init__(self) -> None:
        for need in self.needs:
            if need not in NEEDS and not need.startswith("extra "):
                raise ValueError(f"{self.name}: needs {need!r}, which is none of {', '.join(NEEDS)}")

    @property
    def revision(self) -> str:
        """The commit that the data are read at; `unpinned` where the newest is taken, which the run records."""
        if not self.data.startswith("hf://"):
            return ""
        revision = self.data.partition("revision=")[2].partition("&")[0]
        return revision if len(revision) == 40 else "unpinned"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the revision among them."""
        return {**asdict(self), "revision": self.revision}


NEEDS = {
    "judge": "a judge in `scoring.metrics`",
    "logprobs": "a service that returns log-probabilities of the answer",
    "prompt logprobs": "a text completion service that returns log-probabilities of the prompt (`echo`)",
    "sandbox": "a sandbox in which code runs",
    "gated data": "access to the data set: accept its terms on its page, then set HF_TOKEN",
}
"""What a benchmark may need, and what that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A kind of benchmark address."""

    description: str
    loader: str | None = None
    """`module:attr` of a function of the address, `params` and `dataset`; None before it is available."""
    needs: str = ""


_MGSM = "hf://juletxara/mgsm?config=bn,de,en,es,fr,ja,ru,sw,te,th,zh&split=test&revision=refs/convert/parquet"
_TRUTHFULQA = "hf://truthfulqa/truthful_qa?config=multiple_choice&split=validation"
_BBH = (
    "hf://lukaemon/bbh?config="
    "boolean_expressions,"
    "causal_judgement,"
    "date_understanding,"
    "disambiguation_qa,"
    "dyck_languages,"
    "formal_fallacies,"
    "geometric_shapes,"
    "hyperbaton,"
    "logical_deduction_five_objects,"
    "logical_deduction_seven_objects,"
    "logical_deduction_three_objects,"
    "movie_recommendation,"
    "multistep_arithmetic_two,"
    "navigate,"
    "object_counting,"
    "penguins_in_a_table,"
    "reasoning_about_colored_objects,"
    "ruin_names,"
    "salient_translation_error_detection,"
    "snarks,"
    "sports_understanding,"
    "temporal_sequences,"
    "tracking_shuffled_objects_five_objects,"
    "tracking_shuffled_objects_seven_objects,"
    "tracking_shuffled_objects_three_objects,"
    "web_of_lies,"
    "word_sorting"
    "&split=test"
)
_OURS = "package data of NEL"

BUILT_IN: dict[str, BenchmarkInfo] = {
    info.name: info
    for info in (
        BenchmarkInfo(
            name="aime24",
            description="AIME 2024: competition problems with integer answers.",
            location="nel.benchmarks.aime24:aime24",
            category="maths",
            size=30,
            license="unknown",
            data="hf://HuggingFaceH4/aime_2024?split=train",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="aime25",
            description="AIME 2025: competition problems with integer answers.",
            location="nel.benchmarks.aime25:aime25",
            category="maths",
            size=30,
            license="unknown",
            data="hf://math-ai/aime25?split=test",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="arc_challenge",
            description="Grade-school science questions that simple methods miss; asked for a letter.",
            location="nel.benchmarks.arc:arc_challenge",
            category="knowledge",
            size=1172,
            license="CC-BY-SA-4.0",
            data="hf://allenai/ai2_arc?config=ARC-Challenge&split=test",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="arc_challenge_loglikelihood",
            description="The same, decided by the likelihood of each answer per byte.",
            location="nel.benchmarks.arc:arc_challenge_loglikelihood",
            category="knowledge",
            size=1172,
            license="CC-BY-SA-4.0",
            data="hf://allenai/ai2_arc?config=ARC-Challenge&split=test",
            metric="accuracy",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="arc_easy",
            description="Grade-school science questions; asked for a letter.",
            location="nel.benchmarks.arc:arc_easy",
            category="knowledge",
            size=2376,
            license="CC-BY-SA-4.0",
            data="hf://allenai/ai2_arc?config=ARC-Easy&split=test",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="arc_easy_loglikelihood",
            description="The same, decided by the likelihood of each answer per byte.",
            location="nel.benchmarks.arc:arc_easy_loglikelihood",
            category="knowledge",
            size=2376,
            license="CC-BY-SA-4.0",
            data="hf://allenai/ai2_arc?config=ARC-Easy&split=test",
            metric="accuracy",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="bbh",
            description="BIG-Bench Hard: 27 tasks of reasoning, zero-shot; scores by task.",
            location="nel.benchmarks.bbh:bbh",
            category="reasoning",
            size=6511,
            license="MIT",
            data=_BBH,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="drop",
            description="Reading passages that ask to add, count, sort or compare; three examples.",
            location="nel.benchmarks.drop:drop",
            category="reading",
            size=9536,
            license="CC-BY-SA-4.0",
            data="hf://ucinlp/drop?split=validation",
            metric="F1",
            cluster="section_id",
        ),
        BenchmarkInfo(
            name="gpqa",
            description="GPQA Diamond: graduate-level science; options in a drawn order.",
            location="nel.benchmarks.gpqa:gpqa",
            category="knowledge",
            size=198,
            license="CC-BY-4.0",
            data="hf://Idavidrein/gpqa?config=gpqa_diamond&split=train",
            metric="accuracy",
            needs=("gated data",),
        ),
        BenchmarkInfo(
            name="gsm8k",
            description="Grade-school maths word problems; the last stated number counts.",
            location="nel.benchmarks.gsm8k:gsm8k",
            category="maths",
            size=1319,
            license="MIT",
            data="hf://openai/gsm8k?config=main&split=test&revision=e53f048856ff4f594e959d75785d2c2d37b678ee",
            metric="accuracy",
            reference="GPT-4: 92.0 %, 5-shot with reasoning (arXiv:2303.08774)",
        ),
        BenchmarkInfo(
            name="healthbench",
            description="Conversations on health; a judge decides each physician's criterion.",
            location="nel.benchmarks.healthbench:healthbench",
            category="health",
            size=5000,
            license="MIT",
            data="hf://openai/healthbench?split=2025-05-07-06-14-12_oss_eval",
            metric="share of points",
            needs=("judge",),
        ),
        BenchmarkInfo(
            name="hellaswag",
            description="Which ending follows a scene? Asked for a letter.",
            location="nel.benchmarks.hellaswag:hellaswag",
            category="common sense",
            size=10042,
            license="MIT",
            data="hf://Rowan/hellaswag?split=validation",
            metric="accuracy",
            cluster="source_id",
        ),
        BenchmarkInfo(
            name="hellaswag_loglikelihood",
            description="The same, decided by the likelihood of each ending per byte.",
            location="nel.benchmarks.hellaswag:hellaswag_loglikelihood",
            category="common sense",
            size=10042,
            license="MIT",
            data="hf://Rowan/hellaswag?split=validation",
            metric="accuracy",
            cluster="source_id",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="humaneval",
            description="Python functions from signature and docstring; their tests are run in a sandbox.",
            location="nel.benchmarks.humaneval:humaneval",
            category="code",
            size=164,
            license="MIT",
            data="hf://openai/openai_humaneval?split=test",
            metric="accuracy",
            needs=("sandbox",),
        ),
        BenchmarkInfo(
            name="ifeval",
            description="Instructions that a program can check; strict and loose.",
            location="nel.benchmarks.ifeval:ifeval",
            category="instructions",
            size=541,
            license="Apache-2.0",
            data="hf://google/IFEval?split=train",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="math500",
            description="Competition mathematics; answers are compared as mathematics.",
            location="nel.benchmarks.math500:math500",
            category="maths",
            size=500,
            license="MIT",
            data="hf://HuggingFaceH4/MATH-500?split=test",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="mbpp",
            description="Short Python programs from a sentence and assertions, which are run in a sandbox.",
            location="nel.benchmarks.mbpp:mbpp",
            category="code",
            size=500,
            license="CC-BY-4.0",
            data="hf://google-research-datasets/mbpp?config=full&split=test",
            metric="accuracy",
            needs=("sandbox",),
        ),
        BenchmarkInfo(
            name="mgsm",
            description="Grade-school maths in eleven languages; scores by language.",
            location="nel.benchmarks.mgsm:mgsm",
            category="maths",
            size=2750,
            license="CC-BY-SA-4.0",
            data=_MGSM,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="mmlu",
            description="Multiple choice over 57 subjects; scores by subject.",
            location="nel.benchmarks.mmlu:mmlu",
            category="knowledge",
            size=14042,
            license="MIT",
            data="hf://cais/mmlu?config=all&split=test&revision=c30699e8356da336a370243923dbaf21066bb9fe",
            metric="accuracy",
            reference="GPT-4: 86.4 %, 5-shot (arXiv:2303.08774)",
        ),
        BenchmarkInfo(
            name="mmlu_pro",
            description="Multiple choice with up to ten options; scores by discipline.",
            location="nel.benchmarks.mmlu_pro:mmlu_pro",
            category="knowledge",
            size=12032,
            license="MIT",
            data="hf://TIGER-Lab/MMLU-Pro?split=test",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="quickstart_arithmetic",
            description="Easy sums that a very small model gets partly right.",
            location="nel.benchmarks.quickstart_arithmetic:quickstart_arithmetic",
            category="quickstart",
            size=60,
            license="Apache-2.0",
            data=_OURS,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="quickstart_choice",
            description="Four options, decided by the log-probability of their letters as the next token.",
            location="nel.benchmarks.quickstart_choice:quickstart_choice",
            category="quickstart",
            size=48,
            license="Apache-2.0",
            data=_OURS,
            metric="accuracy",
            needs=("logprobs",),
        ),
        BenchmarkInfo(
            name="quickstart_facts",
            description="Common knowledge with short answers, found in the reply as whole words.",
            location="nel.benchmarks.quickstart_facts:quickstart_facts",
            category="quickstart",
            size=50,
            license="Apache-2.0",
            data=_OURS,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="quickstart_format",
            description="Does the reply keep to the form that was asked for? Checked by small programs.",
            location="nel.benchmarks.quickstart_format:quickstart_format",
            category="quickstart",
            size=40,
            license="Apache-2.0",
            data=_OURS,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="simpleqa",
            description="Short facts, graded correct, incorrect or not attempted by a judge.",
            location="nel.benchmarks.simpleqa:simpleqa",
            category="knowledge",
            size=4326,
            license="MIT",
            data="hf://basicv8vc/SimpleQA?split=test",
            metric="accuracy",
            needs=("judge",),
        ),
        BenchmarkInfo(
            name="triviaqa",
            description="Trivia without context; any alias of the answer counts.",
            location="nel.benchmarks.triviaqa:triviaqa",
            category="knowledge",
            size=17944,
            license="Apache-2.0",
            data="hf://mandarjoshi/trivia_qa?config=rc.nocontext&split=validation",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="truthfulqa",
            description="Questions that many answer wrongly; asked for a letter.",
            location="nel.benchmarks.truthfulqa:truthfulqa",
            category="knowledge",
            size=817,
            license="Apache-2.0",
            data=_TRUTHFULQA,
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="truthfulqa_mc1",
            description="The same, decided by the likeliest answer.",
            location="nel.benchmarks.truthfulqa:truthfulqa_mc1",
            category="knowledge",
            size=817,
            license="Apache-2.0",
            data=_TRUTHFULQA,
            metric="accuracy",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="truthfulqa_mc2",
            description="The same: the share of probability of all true answers.",
            location="nel.benchmarks.truthfulqa:truthfulqa_mc2",
            category="knowledge",
            size=817,
            license="Apache-2.0",
            data=_TRUTHFULQA,
            metric="probability",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="winogrande",
            description="Which name fills the gap? Asked for a letter.",
            location="nel.benchmarks.winogrande:winogrande",
            category="common sense",
            size=1267,
            license="Apache-2.0",
            data="hf://allenai/winogrande?config=winogrande_xl&split=validation",
            metric="accuracy",
        ),
        BenchmarkInfo(
            name="winogrande_loglikelihood",
            description="The same, decided by the likelihood of the rest of the sentence.",
            location="nel.benchmarks.winogrande:winogrande_loglikelihood",
            category="common sense",
            size=1267,
            license="Apache-2.0",
            data="hf://allenai/winogrande?config=winogrande_xl&split=validation",
            metric="accuracy",
            needs=("prompt logprobs",),
        ),
        BenchmarkInfo(
            name="xstest",
            description="Safe prompts that look unsafe, and unsafe ones; a judge tells refusals.",
            location="nel.benchmarks.xstest:xstest",
            category="safety",
            size=450,
            license="CC-BY-4.0",
            data="hf://walledai/XSTest?split=test",
            metric="accuracy",
            needs=("judge",),
        ),
        BenchmarkInfo(
            name="xstest_strings",
            description="The same, refusals told by the reply's first words.",
            location="nel.benchmarks.xstest:xstest_strings",
            category="safety",
            size=450,
            license="CC-BY-4.0",
            data="hf://walledai/XSTest?split=test",
            metric="accuracy",
        ),
    )
}

SCHEMES: dict[str, Scheme] = {
    "lm-eval": Scheme(description="a task or group of lm-evaluation-harness", needs="the extra `lm-eval`"),
    "skills": Scheme(description="a NeMo Skills benchmark", needs="the extra `skills`"),
    "gym": Scheme(description="an environment server"),
    "vlmevalkit": Scheme(description="a VLMEvalKit data set", needs="the extra `vlm`"),
    "harbor": Scheme(description="a Harbor task suite", needs="the extra `harbor`"),
    "container": Scheme(description="a task of a harness container", needs="docker"),
}
