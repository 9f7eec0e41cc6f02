"""Data sources: files, folders, packages, the hub, functions."""

from nel.environments.data.opening import DataSpec, open_source, replaced
from nel.environments.data.source import DataSource, Row

__all__ = ["DataSource", "DataSpec", "Row", "open_source", "replaced"]
