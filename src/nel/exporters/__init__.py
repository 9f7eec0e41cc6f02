"""Runs for other tools: an exporter takes runs as `RunView` shows them, and never changes them."""

from typing import TYPE_CHECKING

from nel.core.loading import lazy_export

if TYPE_CHECKING:
    from nel.exporters.base import Exporter as Exporter
    from nel.exporters.base import get_exporter as get_exporter
    from nel.exporters.inspect_log import InspectExporter as InspectExporter
    from nel.exporters.mlflow import MLflowExporter as MLflowExporter
    from nel.exporters.wandb import WandBExporter as WandBExporter

_NAMES = {
    "Exporter": "nel.exporters.base",
    "get_exporter": "nel.exporters.base",
    "InspectExporter": "nel.exporters.inspect_log",
    "MLflowExporter": "nel.exporters.mlflow",
    "WandBExporter": "nel.exporters.wandb",
}
__getattr__, __dir__ = lazy_export(__name__, _NAMES)
