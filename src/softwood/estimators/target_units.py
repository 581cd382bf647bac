"""Target units: trainers see a standardised target t = (y - center) / scale; people see y.

Statistics (w, w t, w t^2) become those of y - center; impurities of squares grow by scale^2. Class counts have
center 0 and scale 1, and nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softwood.train.recipe import Recipe
from softwood.tree import Tree


@dataclass(frozen=True)
class TargetUnits:
    """How the target a trainer saw was made."""

    center: float = 0.0
    scale: float = 1.0

    @property
    def per_impurity(self) -> float:
        """The user's impurity of one unit of the trainer's."""
        return self.scale**2

    def inwards(self, recipe: Recipe) -> Recipe:
        """The recipe with its impurities in the trainer's units."""
        return replace(
            recipe,
            min_impurity_decrease=recipe.min_impurity_decrease / self.per_impurity,
            ccp_alpha=recipe.ccp_alpha / self.per_impurity,
        )

    def outwards(self, tree: Tree) -> Tree:
        """The tree with statistics and values in the user's units."""
        if self == TargetUnits():
            return tree
        powers = self.scale ** np.arange(tree.statistics.shape[1])
        tree = tree.with_values(tree.statistics * powers, tree.values * self.scale + self.center)
        return tree if tree.lines is None else replace(tree, lines=tree.lines.rescaled(self.scale, self.center))
