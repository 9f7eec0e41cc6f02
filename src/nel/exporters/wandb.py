"""`wandb`: a Weights & Biases run for each run of ours, with the headline numbers and a table of the cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from nel.core.errors import UsageError
from nel.core.loading import require
from nel.exporters.base import run_name
from nel.reporting.run_view import RunView

MODES = ("offline", "online")


class WandBExporter:
    """`mode` is `offline` by default: the files are written, and `wandb sync` sends them.

    Their run id is made from ours, so exporting again changes the same run.
    """

    name: ClassVar[str] = "wandb"

    def __init__(
        self, *, project: str = "nel", entity: str = "", mode: Literal["offline", "online"] = "offline"
    ) -> None:
        if mode not in MODES:
            raise UsageError(f"mode is {mode!r}; offline or online is expected")
        self.project = project
        self.entity = entity or None
        self.mode: Literal["offline", "online"] = mode

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        wandb = require("wandb", what="The exporter wandb", extra="wandb")
        output.mkdir(parents=True, exist_ok=True)
        cells = run.cells()
        settings = wandb.Settings(silent=True, disable_git=True, disable_code=True, x_disable_stats=True)
        with wandb.init(
            project=self.project,
            entity=self.entity,
            name=run_name(run),
            id=run_name(run),
            resume="allow" if self.mode == "online" else None,
            dir=str(output),
            mode=self.mode,
            config={"run_id": run.manifest.run_id, "cells": {cell.name: cell.config for cell in cells}},
            settings=settings,
        ) as sink:
            columns = ["cell", "model", "metric", "value", "ci_lower", "ci_upper", "scored", "unscored", "error"]
            table = wandb.Table(columns=columns)
            for cell in cells:
                for name, metric in cell.metrics.items():
                    if metric.value is not None:
                        sink.summary[f"{cell.name}/{name}"] = metric.value
                    table.add_data(
                        *(cell.name, cell.model, name, metric.value, metric.ci_lower, metric.ci_upper),
                        *(metric.scored, metric.unscored, metric.error),
                    )
            sink.log({"results": table})
            return [sink.url if self.mode == "online" else str(Path(sink.dir).parent)]
