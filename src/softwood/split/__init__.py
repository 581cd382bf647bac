"""Split families: one file each, registered here once."""

from __future__ import annotations

from softwood.split.axis import Axis
from softwood.split.base import AbstractSplit, Asked, Units
from softwood.split.custom import Custom
from softwood.split.flowing import Flowing
from softwood.split.kernel import Kernel
from softwood.split.layered import Layered
from softwood.split.linear import Linear
from softwood.split.multiway import Multiway
from softwood.split.network import Network
from softwood.split.pretransform import Pretransform
from softwood.split.torch_module import torch_split

SPLITS: dict[str, type[AbstractSplit]] = {
    "linear": Linear,
    "axis": Axis,
    "pretransform": Pretransform,
    "network": Network,
    "multiway": Multiway,
    "layered": Layered,
    "kernel": Kernel,
    "flowing": Flowing,
}

__all__ = [
    "SPLITS",
    "AbstractSplit",
    "Asked",
    "Axis",
    "Custom",
    "Flowing",
    "Kernel",
    "Layered",
    "Linear",
    "Multiway",
    "Network",
    "Pretransform",
    "Units",
    "torch_split",
]
