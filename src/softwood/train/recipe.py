"""The recipe: estimator parameters, and the chain of trainers that they and the data call for.

Every rule that turns "auto" into a number is here; docs/recipe.md tells where each comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from softwood.source import ArraySource
from softwood.split import SPLITS, AbstractSplit
from softwood.train.base import AbstractTrainer, Chain
from softwood.train.best_of import BestOf
from softwood.train.fit_lines import FitLines
from softwood.train.grow_greedy import GrowGreedy
from softwood.train.grow_hard import GrowHard
from softwood.train.grow_projected import GrowProjected
from softwood.train.harden import Harden
from softwood.train.prune import Prune
from softwood.train.refine import Descend, Lbfgs, Refine, Watch
from softwood.train.refine_lines import RefineLines
from softwood.train.select import Folds, Select, Stage, class_losses, number_losses
from softwood.train.smooth import Smooth

Auto = Literal["auto"]
SEARCHED_WORK = 5e10  # multiply-adds of one descent, half a second, above which nothing is searched
SEARCHED_ROWS = 50_000  # rows above which sums over all rows cost as much as steps
QUICK = 2  # a candidate of the search takes half the steps
DECAYS = (0.02, 0.05, 0.2, 0.4, 1.0)  # alternatives to the first decay, 0.1
PROJECTED_DECAYS = (0.1, 0.4)  # decays of the second start


@dataclass(frozen=True)
class Recipe:
    """Validated settings of one fit, by the estimators' names."""

    training: Literal["global", "greedy", "cart"] = "global"
    split: str | AbstractSplit = "linear"
    max_depth: int | None = 6
    search: bool | Auto = "auto"
    n_starts: int = 1
    weight_decay: float | Auto = "auto"
    max_iter: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    learning_rate: float | Auto = "auto"
    solver: Literal["adam", "lbfgs"] = "adam"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-4
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_leaf_nodes: int | None = None
    max_bins: int = 255
    ccp_alpha: float = 0.0
    smoothing: float = 0.0
    leaves: Literal["constant", "linear"] = "constant"
    judge: Literal["classes", "numbers"] = "numbers"  # what the search counts on held-out rows


@dataclass(frozen=True)
class Setting:
    """What the search may change."""

    depth: int | None
    decay: float = 0.1
    start: Literal["cart", "projected", "plain"] = "cart"  # plain: CART itself, nothing refined


def trainer_of(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    """The chain that a recipe means for this data."""
    trainer = TRAININGS[recipe.training](recipe, source)  # a search judges by constants: level, and half the time
    return Chain([trainer, FitLines()]) if recipe.leaves == "linear" else trainer


def _cart(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    return Chain([_grow(recipe, recipe.max_depth), *_finish(recipe, refined=False)])


def _greedy(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    first = Setting(1, _decay(recipe))
    stump = replace(recipe, max_depth=1, min_samples_split=2, max_leaf_nodes=None, early_stopping=False)
    stumps = [_refined(stump, source, replace(first, start=start), 300) for start in ("cart", "projected")]
    grow = GrowGreedy(
        [*stumps, _grow(stump, 1)],
        recipe.max_depth,
        recipe.min_samples_split,
        recipe.min_samples_leaf,
        recipe.min_impurity_decrease,
        recipe.max_leaf_nodes,
    )
    return Chain([grow, *_finish(recipe, refined=False)])


def _global(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    first = Setting(recipe.max_depth, _decay(recipe))
    build = _builder(recipe, source)
    if not searched(recipe, source):
        return build(first, False)
    stages = _stages(recipe, source.n)
    judge = {"classes": class_losses, "numbers": number_losses}[recipe.judge]
    return Select(first, stages, build, judge, _folds(source.n))


TRAININGS: dict[str, Callable[[Recipe, ArraySource], AbstractTrainer]] = {
    "global": _global,
    "greedy": _greedy,
    "cart": _cart,
}


def searched(recipe: Recipe, source: ArraySource) -> bool:
    """Whether settings are searched: asked for, or cheap enough (and enough rows to judge by)."""
    if recipe.search != "auto":
        return bool(recipe.search)
    return 20 <= source.n <= SEARCHED_ROWS and descent_work(recipe, source) <= SEARCHED_WORK


def descent_work(recipe: Recipe, source: ArraySource) -> float:
    """Multiply-adds of one full descent: two matrix products and about thirty passes over the gates."""
    descent = _descent(recipe, source, 0.1)
    questions = 2.0 ** min(recipe.max_depth or 12, 12)
    return float(descent.n_steps) * min(descent.batch_size, source.n) * questions * (2.0 * source.p + 30.0)


def _folds(n: int) -> Folds:
    """The fewer rows, the more of them must judge."""
    if n < 2500:
        return Folds(5, 5 if n < 500 else 2)
    return Folds(3, 1) if n < 20_000 else Folds()


def _stages(recipe: Recipe, n: int) -> Sequence[Stage[Setting]]:
    """Decay and start together, then smaller depths, then CART as it is."""
    depths = [depth for depth in range((recipe.max_depth or 0) - 2, 0, -2) if 2**depth <= n][:3]
    plain = [recipe.max_depth, *depths[:1]]
    return [
        Stage(partial(_decays_and_starts, searched=recipe.weight_decay == "auto"), 0.5),
        *(Stage(partial(_at_depth, depth=depth)) for depth in depths),
        Stage(lambda best: [Setting(depth, start="plain") for depth in plain]),
    ]


def _decays_and_starts(best: Setting, searched: bool) -> Sequence[Setting]:
    decays, projected = (DECAYS, PROJECTED_DECAYS) if searched else ((), (best.decay,))
    return [
        *(replace(best, decay=decay) for decay in decays),
        *(replace(best, start="projected", decay=decay) for decay in projected),
    ]


def _at_depth(best: Setting, depth: int) -> Sequence[Setting]:
    return [replace(best, depth=depth)]


def _builder(recipe: Recipe, source: ArraySource) -> Callable[[Setting, bool], AbstractTrainer]:
    full = _descent(recipe, source, 0.0).n_steps

    def build(setting: Setting, quick: bool) -> AbstractTrainer:
        if setting.start == "plain":
            return Chain([_grow(recipe, setting.depth), *_finish(recipe, refined=False)])
        if quick:
            return _refined(recipe, source, setting, max(full // QUICK, 1))
        starts = [replace(setting, start="projected") for _ in range(recipe.n_starts - 1)]
        trainers = [_refined(recipe, source, each, full) for each in (setting, *starts)]
        best = trainers[0] if len(trainers) == 1 else BestOf(trainers)
        return Chain([best, *_refined_for_lines(recipe, source, setting), *_finish(recipe, refined=True)])

    return build


def _refined(recipe: Recipe, source: ArraySource, setting: Setting, n_steps: int) -> AbstractTrainer:
    """A start, and global training from it."""
    optimizer: Descend | Lbfgs = replace(_descent(recipe, source, setting.decay), n_steps=n_steps)
    if recipe.solver == "lbfgs":
        optimizer = Lbfgs(n_steps, setting.decay * 1e-2, recipe.tol * 1e-2)
    watch = None
    if recipe.early_stopping:
        watch = Watch(recipe.validation_fraction, recipe.n_iter_no_change, recipe.tol)
    depth = setting.depth if recipe.max_leaf_nodes is None else None
    start = GrowProjected(depth) if setting.start == "projected" and depth else _grow(recipe, setting.depth)
    return Chain([start, Refine(depth, _split(recipe), optimizer, watch)])


def _refined_for_lines(recipe: Recipe, source: ArraySource, setting: Setting) -> list[AbstractTrainer]:
    """Fewer, smaller and shorter steps: the questions are good already, and each step solves a system per leaf."""
    if recipe.leaves == "constant":
        return []
    full = _descent(recipe, source, setting.decay)
    batch_size = 512 if recipe.batch_size == "auto" else recipe.batch_size
    steps = replace(full, n_steps=max(1, 3 * full.n_steps // 10), rate=full.rate / 3, batch_size=batch_size)
    return [RefineLines(_split(recipe), steps)]


def _grow(recipe: Recipe, depth: int | None) -> AbstractTrainer:
    return GrowHard(
        depth,
        recipe.min_samples_split,
        recipe.min_samples_leaf,
        recipe.min_impurity_decrease,
        recipe.max_leaf_nodes,
        recipe.max_bins,
    )


def _finish(recipe: Recipe, *, refined: bool) -> list[AbstractTrainer]:
    """Exact statistics and no dead branches after training by gradient; pruning where asked for."""
    chain: list[AbstractTrainer] = []
    if refined or recipe.min_weight_fraction_leaf > 0:
        values: Literal["soft", "hard"] = "soft" if refined else "hard"
        chain.append(Harden(values, recipe.min_samples_leaf, recipe.min_weight_fraction_leaf))
    if recipe.ccp_alpha > 0:
        chain.append(Prune(recipe.ccp_alpha))
    if recipe.smoothing > 0:
        chain.append(Smooth(recipe.smoothing))
    return chain


def _descent(recipe: Recipe, source: ArraySource, decay: float) -> Descend:
    """Steps, batch and rate."""
    steps = 1000 if recipe.solver == "adam" else 200
    return Descend(
        steps if recipe.max_iter == "auto" else recipe.max_iter,
        _batch_size(source.n) if recipe.batch_size == "auto" else recipe.batch_size,
        0.15 if recipe.learning_rate == "auto" else recipe.learning_rate,
        decay,
    )


def _batch_size(n: int) -> int:
    """About a quarter of the rows: smaller ones are too noisy for many leaves, larger ones learn the rows by heart."""
    return 512 if n < 4000 else 2048 if n < 12_000 else 4096 if n < 24_000 else 8192


def _decay(recipe: Recipe) -> float:
    return 0.1 if recipe.weight_decay == "auto" else recipe.weight_decay


def _split(recipe: Recipe) -> AbstractSplit:
    return recipe.split if isinstance(recipe.split, AbstractSplit) else SPLITS[recipe.split]()
