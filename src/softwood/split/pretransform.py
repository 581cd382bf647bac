"""The pretransform family: score of node k = w_k . a(A_k x + c_k) + b_k, a logistic regression on bent columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from softwood.split.checks import check_activation, check_count
from softwood.split.dense import AbstractDense


@dataclass(frozen=True)
class Pretransform(AbstractDense):
    """Questions about a few bent directions.

    Parameters
    ----------
    n_rows : int, default=4
        Rows of A: directions that a question looks along.
    activation : {"tanh", "relu", "sigmoid", "identity"}, default="tanh"
        What bends them.
    n_children : int, default=2
        Children of each node.
    """

    n_rows: int = 4
    activation: str = "tanh"
    n_children: int = 2
    name: ClassVar[str] = "pretransform"

    def __post_init__(self) -> None:
        check_count("Pretransform", "n_rows", self.n_rows)
        check_activation("Pretransform", self.activation)
        check_count("Pretransform", "n_children", self.n_children, 2)

    @property
    def hidden(self) -> tuple[int, ...]:
        return (self.n_rows,)

    @property
    def arity(self) -> int:
        return self.n_children
