"""Data sources: files, folders, packages, the hub, functions."""

from nel.environments.data.opening import DataSpec, is_on_hub, open_source, replaced
from nel.environments.data.source import DataSource, Row

__all__ = ["DataSource", "DataSpec", "Row", "is_on_hub", "open_source", "replaced"]
