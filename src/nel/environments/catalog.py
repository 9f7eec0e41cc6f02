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
        return self.data.partition("revision=")[2].partition("&")[0] or "unpinned"

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


_OURS = "package data of NEL"

BUILT_IN: dict[str, BenchmarkInfo] = {
    info.name: info
    for info in (
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
