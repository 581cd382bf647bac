"""Target units: trainers see a standardised target t = (y - center) / scale; people see y.

Statistics of t become those of y - center, and impurities grow with a power of the scale: squares with the second, the
Poisson deviance with the first, the gamma deviance, which sees ratios only, with none. Class counts have center 0 and
scale 1, and nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from softwood.train.recipe import Recipe
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TargetUnits:
    """How the target a trainer saw was made."""

    center: float = 0.0
    scale: float = 1.0
    power: int = 2  # of the scale that an impurity grows with

    @property
    def per_impurity(self) -> float:
        """The user's impurity of one unit of the trainer's."""
        return self.scale**self.power

    def inwards(self, recipe: Recipe) -> Recipe:
        """The recipe with its impurities in the trainer's units."""
        return replace(
            recipe,
            min_impurity_decrease=recipe.min_impurity_decrease / self.per_impurity,
            ccp_alpha=recipe.ccp_alpha / self.per_impurity,
        )

    def outwards(self, tree: Tree) -> Tree:
        """The tree with statistics and values in the user's units."""
        if self.center == 0 and self.scale == 1:
            return tree
        tree = tree.with_values(self._statistics(tree.statistics), tree.values * self.scale + self.center)
        return tree if tree.lines is None else replace(tree, lines=tree.lines.rescaled(self.scale, self.center))

    def _statistics(self, S: FloatArray) -> FloatArray:
        if self.power == 2:  # (w, w t, w t^2), and whatever else is made of powers of t
            return S * self.scale ** np.arange(S.shape[1])
        w, wt, logs = S.T  # (w, w t, w t log t) or (w, w t, w log t)
        logs = self.per_impurity * (logs + math.log(self.scale) * (wt if self.power == 1 else w))
        return np.stack([w, wt * self.scale, logs], axis=1)
