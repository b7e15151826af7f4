"""Viewkeeper keeps materialized views on Apache Spark and Delta Lake right, at the least cost."""

from __future__ import annotations

from viewkeeper.errors import ViewkeeperError
from viewkeeper.settings import Settings
from viewkeeper.warehouse import Warehouse

__all__ = ["Settings", "ViewkeeperError", "Warehouse"]
