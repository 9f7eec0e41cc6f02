"""Suites: services up, benchmarks run, services down."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "DeployConfig": "nel.orchestration.model_server",
        "make_plan": "nel.orchestration.plan",
        "rescore": "nel.orchestration.rescore",
        "run_local": "nel.orchestration.suite",
    },
)
