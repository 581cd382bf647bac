"""Trainers: Tree -> Tree. They search; splits only route; none of them knows a loss or an estimator."""
