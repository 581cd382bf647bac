"""Split families: one file each, registered here once."""

from __future__ import annotations

from softwood.split.axis import Axis
from softwood.split.base import AbstractSplit, Asked, Units
from softwood.split.linear import Linear

SPLITS: dict[str, type[AbstractSplit]] = {"linear": Linear, "axis": Axis}

__all__ = ["SPLITS", "AbstractSplit", "Asked", "Axis", "Linear", "Units"]
