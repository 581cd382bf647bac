"""The network family: each node's score is a network of its own with any number of hidden layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from softwood.split.checks import check_activation, check_count
from softwood.split.dense import AbstractDense


@dataclass(frozen=True)
class Network(AbstractDense):
    """Questions asked by small networks.

    Parameters
    ----------
    hidden : tuple of int, default=(8, 4)
        Units of each hidden layer, the one next to the columns first.
    activation : {"tanh", "relu", "sigmoid", "identity"}, default="tanh"
        The function after each hidden layer.
    n_children : int, default=2
        Children of each node.
    """

    hidden: tuple[int, ...] = (8, 4)
    activation: str = "tanh"
    n_children: int = 2
    name: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, Iterable):
            raise ValueError(f"Network: hidden must list the units of each hidden layer; got {self.hidden!r}.")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for units in self.hidden:
            check_count("Network", "hidden", units)
        check_activation("Network", self.activation)
        check_count("Network", "n_children", self.n_children, 2)

    @property
    def arity(self) -> int:
        return self.n_children
