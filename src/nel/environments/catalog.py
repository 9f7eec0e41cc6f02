"""The built-in benchmarks and the URI schemes: what they are, in a table that can be printed without loading them."""

from __future__ import annotations

from dataclasses import dataclass


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
            data="hf://openai/gsm8k?config=main&split=test",
        ),
        BenchmarkInfo(
            name="mmlu",
            description="Multiple choice over 57 subjects; scores by subject.",
            location="nel.benchmarks.mmlu:mmlu",
            category="knowledge",
            size=14042,
            license="MIT",
            data="hf://cais/mmlu?config=all&split=test",
        ),
        BenchmarkInfo(
            name="quickstart_arithmetic",
            description="Easy sums that a very small model gets partly right.",
            location="nel.benchmarks.quickstart_arithmetic:quickstart_arithmetic",
            category="quickstart",
            size=60,
            license="Apache-2.0",
            data=_OURS,
        ),
        BenchmarkInfo(
            name="quickstart_choice",
            description="Four options, decided by the log-probability of their letters as the next token.",
            location="nel.benchmarks.quickstart_choice:quickstart_choice",
            category="quickstart",
            size=48,
            license="Apache-2.0",
            data=_OURS,
        ),
        BenchmarkInfo(
            name="quickstart_facts",
            description="Common knowledge with short answers, found in the reply as whole words.",
            location="nel.benchmarks.quickstart_facts:quickstart_facts",
            category="quickstart",
            size=50,
            license="Apache-2.0",
            data=_OURS,
        ),
        BenchmarkInfo(
            name="quickstart_format",
            description="Does the reply keep to the form that was asked for? Checked by small programs.",
            location="nel.benchmarks.quickstart_format:quickstart_format",
            category="quickstart",
            size=40,
            license="Apache-2.0",
            data=_OURS,
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
