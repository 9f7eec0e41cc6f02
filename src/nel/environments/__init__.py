"""Where problems come from: the contract, the registry, `@benchmark`, data sources."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "BenchmarkDefinition": "nel.environments.definition",
        "BenchmarkInfo": "nel.environments.catalog",
        "ByobEnvironment": "nel.environments.byob",
        "EvalEnvironment": "nel.environments.base",
        "SeedResult": "nel.environments.base",
        "VerifyResult": "nel.environments.base",
        "benchmark": "nel.environments.decorators",
        "get_environment": "nel.environments.registry",
        "list_benchmarks": "nel.environments.registry",
        "register": "nel.environments.decorators",
        "scorer": "nel.environments.decorators",
    },
)
