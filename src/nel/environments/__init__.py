"""Where problems come from: the contract, the registry, `@benchmark`, data sources."""

from typing import TYPE_CHECKING

from nel.core.loading import lazy_export

if TYPE_CHECKING:
    from nel.environments.base import EvalEnvironment, SeedResult, VerifyResult
    from nel.environments.byob import ByobEnvironment
    from nel.environments.catalog import BenchmarkInfo
    from nel.environments.decorators import benchmark, register, scorer
    from nel.environments.definition import BenchmarkDefinition
    from nel.environments.fewshot import FewShot
    from nel.environments.registry import get_environment, list_benchmarks
    from nel.environments.rows import SkipRow
    from nel.environments.self_test import SelfTest

__all__ = [
    "BenchmarkDefinition",
    "BenchmarkInfo",
    "ByobEnvironment",
    "EvalEnvironment",
    "FewShot",
    "SeedResult",
    "SelfTest",
    "SkipRow",
    "VerifyResult",
    "benchmark",
    "get_environment",
    "list_benchmarks",
    "register",
    "scorer",
]

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "BenchmarkDefinition": "nel.environments.definition",
        "BenchmarkInfo": "nel.environments.catalog",
        "ByobEnvironment": "nel.environments.byob",
        "EvalEnvironment": "nel.environments.base",
        "FewShot": "nel.environments.fewshot",
        "SeedResult": "nel.environments.base",
        "SelfTest": "nel.environments.self_test",
        "SkipRow": "nel.environments.rows",
        "VerifyResult": "nel.environments.base",
        "benchmark": "nel.environments.decorators",
        "get_environment": "nel.environments.registry",
        "list_benchmarks": "nel.environments.registry",
        "register": "nel.environments.decorators",
        "scorer": "nel.environments.decorators",
    },
)
