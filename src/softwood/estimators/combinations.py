"""Combinations: settings that are right one by one and cannot be together, each with its sentence."""

from __future__ import annotations

from softwood.train.recipe import Recipe, split_of


def check_combinations(recipe: Recipe, warm_start: bool) -> None:
    """Raise one sentence for the first pair of settings that contradict each other."""
    _check_split(recipe)
    _check_sizes(recipe)
    _check_steps(recipe)
    _check_start(recipe, warm_start)


def _check_split(recipe: Recipe) -> None:
    """Not every way of training can train every kind of question."""
    split = split_of(recipe)
    if split.name == "axis" and not isinstance(recipe.split, str):
        raise ValueError(
            f"split={recipe.split!r} is for trainers, which give it its columns; an estimator searches them. "
            "Use split='axis'."
        )
    if split.name == "axis" and recipe.training == "grow":
        raise ValueError(
            "split='axis' needs training='global', 'greedy' or 'cart'; got training='grow'. "
            "Use training='global', or split='linear'."
        )
    if recipe.training == "grow" and split.core_name is None:
        raise ValueError(
            f"training='grow' grows slanted questions only; got split={recipe.split!r}. "
            "Use training='global', or split='linear'."
        )
    if recipe.training == "greedy" and split.spans_levels:
        raise ValueError(
            f"split={recipe.split!r} needs training='global', because its questions depend on their depth or on those "
            "above them. Use training='global', or another family."
        )
    if recipe.max_features_per_split is not None and (recipe.training, split.name) != ("global", "linear"):
        raise ValueError(
            "max_features_per_split needs training='global' and split='linear'; got "
            f"training={recipe.training!r} and split={recipe.split!r}. Leave it out."
        )


def _check_sizes(recipe: Recipe) -> None:
    """What bounds a tree must have a meaning for its shape."""
    if recipe.max_leaf_nodes is not None and recipe.training == "global" and split_of(recipe).arity > 2:
        raise ValueError(
            f"max_leaf_nodes={recipe.max_leaf_nodes} has no meaning for questions with more than two answers; got "
            f"split={recipe.split!r}. Leave it None and choose max_depth."
        )
    if recipe.max_leaf_nodes is not None and recipe.training == "grow":
        raise ValueError(
            f"training='grow' decides itself where leaves are worth it; got max_leaf_nodes={recipe.max_leaf_nodes}. "
            "Leave it None and choose max_depth, or use training='global'."
        )
    if recipe.max_depth is None and recipe.training in ("global", "grow"):
        raise ValueError(
            "max_depth=None needs training='cart' or 'greedy', because training all questions at once needs a bound "
            "on their number. Give max_depth an integer."
        )


def _check_steps(recipe: Recipe) -> None:
    """Penalties follow Adam's steps; the best tree on held-out rows may be one that has not been snapped."""
    if recipe.gradient == "sampled" and recipe.solver == "lbfgs":
        raise ValueError(
            "solver='lbfgs' needs gradient='exact', because a line search cannot work with noise; got "
            "gradient='sampled'. Use solver='adam'."
        )
    is_penalised = recipe.l1 > 0 or recipe.axis_penalty > 0
    if is_penalised and split_of(recipe).core_name != "linear":
        raise ValueError(
            f"l1 and axis_penalty are for the weights of slanted questions; got split={recipe.split!r}. "
            "Leave them 0, or use split='linear'."
        )
    if recipe.solver == "lbfgs" and is_penalised:
        raise ValueError(
            "l1 and axis_penalty need solver='adam'; got solver='lbfgs'. Use solver='adam', or leave them 0."
        )
    if recipe.early_stopping and recipe.axis_penalty > 0:
        raise ValueError(
            "axis_penalty needs early_stopping=False, because only the last step leaves one column to a question; "
            "got early_stopping=True. Leave one of them out."
        )


def _check_start(recipe: Recipe, warm_start: bool) -> None:
    """Only global training starts from anything, and only where the search does not choose the start."""
    start = f"init={recipe.init!r}" if isinstance(recipe.init, str) else f"init=a {type(recipe.init).__name__}"
    is_named = start != "init='cart'"
    if recipe.training != "global" and (is_named or warm_start):
        setting = "warm_start=True" if warm_start else start
        raise ValueError(
            f"{setting} needs training='global'; got training={recipe.training!r}, which always grows from the root. "
            "Leave it out, or use training='global'."
        )
    if is_named and recipe.search is True:
        raise ValueError(
            f"search=True chooses the start itself, but {start} names one. "
            "Set search to 'auto' or False, or leave init out."
        )
    if recipe.split == "axis" and isinstance(recipe.init, str) and is_named:
        raise ValueError(
            f"{start} makes slanted questions, but split='axis' asks about one column. "
            "Use init='cart' or give a tree whose questions are thresholds."
        )
    if start in ("init='random'", "init='projected'") and recipe.max_leaf_nodes is not None:
        raise ValueError(
            f"{start} makes a complete tree, but max_leaf_nodes={recipe.max_leaf_nodes} rations leaves. "
            "Use init='cart' or 'greedy', or leave max_leaf_nodes out."
        )
