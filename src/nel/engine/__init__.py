"""The loop for models: seed, solve, verify; what is known is not done again."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "CheckpointManager": "nel.engine.checkpoint",
        "EvaluationSettings": "nel.engine.settings",
        "ModelRunView": "nel.engine.run_view",
        "get_shard_range": "nel.engine.selection",
        "merge_results": "nel.engine.merge",
        "run_evaluation": "nel.engine.run",
    },
)
