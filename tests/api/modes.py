"""Which ways of training there are: the estimators' tests run in each of them."""

from __future__ import annotations

import numpy as np

from softwood.estimators import TreeClassifier
from softwood.estimators.parameters import RULES

TRAININGS = ("global", "greedy", "cart")


def is_there(training: str) -> bool:
    """Whether a tree can be trained so."""
    try:
        TreeClassifier(training=training, max_depth=1).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    except ValueError as error:
        if "no trainer yet" in str(error):
            return False
        raise
    return True


MODES = [training for training in TRAININGS if is_there(training)]
assert RULES["training"].holds(TRAININGS[0])
