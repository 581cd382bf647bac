"""Starts: the name or the tree that global training begins with."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from softwood.train.recipe import Recipe
from softwood.tree import Tree


def start_of(estimator: Any, recipe: Recipe, n_features: int) -> str | Tree:
    """What ``init`` means, or with ``warm_start`` the tree of the last fit."""
    if estimator.warm_start and "tree_" in vars(estimator):
        return _checked(estimator.tree_, "warm_start", recipe, n_features)
    if isinstance(estimator.init, str):
        return estimator.init
    return _checked(_tree_of(estimator.init), "init", recipe, n_features)


def _tree_of(init: Any) -> Tree:
    if isinstance(init, Tree):
        return init
    check_is_fitted(init, msg="init is a %(name)s that is not fitted (clone forgets). Fit it, or give its tree_.")
    tree = vars(init).get("tree_")
    if not isinstance(tree, Tree):
        raise ValueError(f"init must be a softwood tree; got a fitted {type(init).__name__}. Give a tree of softwood.")
    return tree


def _checked(tree: Tree, name: str, recipe: Recipe, n_features: int) -> Tree:
    if tree.n_features != n_features:
        raise ValueError(f"{name} has a tree of {tree.n_features} columns, but X has {n_features}. Give X its columns.")
    limits = {"max_depth": (tree.depth, recipe.max_depth), "max_leaf_nodes": (tree.n_leaves, recipe.max_leaf_nodes)}
    for limit, (has, most) in limits.items():
        if most is not None and has > most:
            raise ValueError(
                f"{name} has a tree of {limit} {has}, but {limit} is {most}. Raise {limit}, or prune first."
            )
    return tree
