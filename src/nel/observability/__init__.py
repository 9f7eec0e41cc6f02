"""What a run tells: attempts, scores, runtime, failures and progress."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "ArtifactCollector": "nel.observability.collector",
        "ConsoleProgress": "nel.observability.progress",
        "FailureReport": "nel.observability.failure_report",
        "ModelResponse": "nel.observability.records",
        "NullProgress": "nel.observability.progress",
        "Outcome": "nel.observability.records",
        "Progress": "nel.observability.progress",
        "ProgressSnapshot": "nel.observability.progress",
        "RuntimeStats": "nel.observability.runtime",
        "StepRecord": "nel.observability.records",
    },
)
