"""The ways of training: the estimators' tests run in each of them."""

MODES = ["global", "grow", "greedy", "cart"]
