"""What a user writes: schemas, composition, overrides and environment, with the file and line of every value."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "EvalConfig": "nel.config.eval_config",
        "LoadedConfig": "nel.config.load",
        "compose_config": "nel.config.compose",
        "get_default": "nel.config.defaults",
        "json_schema": "nel.config.schema",
        "load_config": "nel.config.load",
        "parse_eval_config": "nel.config.eval_config",
        "plan_check": "nel.config.planning",
        "quick_config": "nel.config.quick",
        "set_default": "nel.config.defaults",
        "unset_default": "nel.config.defaults",
    },
)
