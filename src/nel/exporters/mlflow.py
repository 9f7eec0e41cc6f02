"""`mlflow`: an MLflow run for each cell, with its parameters, metrics and bundle; a file store by default."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from nel.core.loading import require
from nel.exporters.base import text_of
from nel.reporting.run_view import CellView, RunView

TAG = "nel.cell"
_LONGEST = 500


class MLflowExporter:
    """A cell that was exported before to the same experiment is left alone: its run is known by a tag."""

    name: ClassVar[str] = "mlflow"

    def __init__(self, *, tracking_uri: str = "", experiment: str = "nel") -> None:
        self.tracking_uri = tracking_uri
        self.experiment = experiment

    def export(self, run: RunView, output: Path) -> Sequence[str]:
        """See `Exporter.export`."""
        if not self.tracking_uri:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions want to be told
        require("mlflow", what="The exporter mlflow", extra="mlflow")
        from mlflow.tracking import MlflowClient

        output.mkdir(parents=True, exist_ok=True)
        uri = self.tracking_uri or (output / "mlruns").resolve().as_uri()
        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name(self.experiment)
        if experiment is None:
            experiment = client.get_experiment(client.create_experiment(self.experiment))
        return [self._cell(client, experiment.experiment_id, run, cell, uri) for cell in run.cells()]

    def _cell(self, client: Any, experiment: str, run: RunView, cell: CellView, uri: str) -> str:
        identity = f"{run.manifest.run_id}/{cell.key}"
        known = client.search_runs([experiment], filter_string=f"tags.`{TAG}` = '{identity}'", max_results=1)
        if known:
            return f"{uri} run {known[0].info.run_id} (there already)"
        sink = client.create_run(experiment, run_name=f"{cell.name} {cell.model}".strip(), tags={TAG: identity})
        place = sink.info.run_id
        for name, value in {"benchmark": cell.benchmark, "model": cell.model, **cell.config}.items():
            client.log_param(place, _key(name), text_of(value)[:_LONGEST])
        for name, metric in cell.metrics.items():
            for part, value in (("", metric.value), (".ci_lower", metric.ci_lower), (".ci_upper", metric.ci_upper)):
                if value is not None:
                    client.log_metric(place, _key(name) + part, value)
        counts = {"scored": cell.counts.scored, "unscored": cell.counts.unscored, "error": cell.counts.error}
        for name, count in counts.items():
            client.log_metric(place, f"count.{name}", count)
        if cell.bundle is not None:
            client.log_artifact(place, str(run.path / cell.bundle))
        client.set_terminated(place, "FAILED" if cell.error else "FINISHED")
        return f"{uri} run {place}"


def _key(name: str) -> str:
    """A name with only the letters that MLflow allows: `pass@1` is `pass_at_1`, `pass^2` `pass_hat_2`."""
    return re.sub(r"[^\w\-./ ]", "_", name.replace("@", "_at_").replace("^", "_hat_"))
