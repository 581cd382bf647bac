"""The multiway family: B linear scores at each node, and the child of the largest is taken (softmax while soft)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from softwood.split.checks import check_count
from softwood.split.dense import AbstractDense


@dataclass(frozen=True)
class Multiway(AbstractDense):
    """Questions with several answers.

    Parameters
    ----------
    n_children : int, default=3
        Children of each node. In a tree of depth 1 that is how many parts the data fall into.
    """

    n_children: int = 3
    name: ClassVar[str] = "multiway"

    def __post_init__(self) -> None:
        check_count("Multiway", "n_children", self.n_children, 2)

    @property
    def hidden(self) -> tuple[int, ...]:
        return ()

    @property
    def activation(self) -> str:
        return "identity"  # there is no layer to come after

    @property
    def arity(self) -> int:
        return self.n_children
