"""From numbers to decisions: compare, rank, gate and plan."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "CompareOptions": "nel.decisions.compare",
        "PlanOptions": "nel.decisions.forecast",
        "adjust": "nel.decisions.multiplicity",
        "compare_runs": "nel.decisions.compare",
        "gate_runs": "nel.decisions.gate",
        "load_policy": "nel.decisions.policy",
        "open_cells": "nel.decisions.selection",
        "plan_from_runs": "nel.decisions.forecast",
        "rank_runs": "nel.decisions.ranking",
    },
)
