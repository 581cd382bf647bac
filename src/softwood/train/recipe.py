"""The recipe: estimator parameters, and the chain of trainers that they and the data call for.

Every rule that turns "auto" into a number is here; docs/recipe.md tells where each comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from softwood.impurity import Gamma, Poisson
from softwood.source import ArraySource
from softwood.split import SPLITS, AbstractSplit, Axis
from softwood.train.base import AbstractTrainer, Chain
from softwood.train.best_of import BestOf
from softwood.train.engine import engine_for
from softwood.train.evolve import Evolve
from softwood.train.fit_lines import FitLines
from softwood.train.given import Given
from softwood.train.grow_centroids import GrowCentroids
from softwood.train.grow_greedy import GrowGreedy
from softwood.train.grow_hard import GrowHard
from softwood.train.grow_projected import GrowProjected
from softwood.train.grow_random import GrowRandom
from softwood.train.harden import Harden
from softwood.train.penalty import AbstractPenalty, AxisPenalty, Lasso, Penalised
from softwood.train.polish import Polish
from softwood.train.prune import Prune
from softwood.train.refine import Descend, Lbfgs, MakesEngine, Refine, Watch
from softwood.train.refine_lines import RefineLines
from softwood.train.sampled import Sampled
from softwood.train.search import CoordinateDescent, LocalSearch
from softwood.train.select import Folds, Judge, Select, Stage, class_losses, number_losses, own_losses
from softwood.train.smooth import Smooth
from softwood.train.sparsify import Sparsify
from softwood.tree import Tree

Auto = Literal["auto"]
SEARCHED_WORK = 5e10  # multiply-adds of one descent, half a second, above which nothing is searched
SEARCHED_ROWS = 50_000  # rows above which sums over all rows cost as much as steps
QUICK = 2  # a candidate of the search takes half the steps
DECAYS = (0.02, 0.05, 0.2, 0.4, 1.0)  # alternatives to the first decay, 0.1
PROJECTED_DECAYS = (0.1, 0.4)  # decays of the second start
ROUNDS = 20  # of local search: a fit then takes some twelve times as long as scikit-learn's CART
STAGE, STAGE_RATE = 0.3, 0.7  # steps and rate of one stage of sparsifying, as shares of those of the descent
SEARCH_CAUTION = 1.0  # standard errors by which local search must beat plain CART on held-out rows
JUDGES: dict[str, Judge] = {  # by the encoding of the targets
    "classes": class_losses,
    "numbers": number_losses,
    "poisson": partial(own_losses, impurity=Poisson()),
    "gamma": partial(own_losses, impurity=Gamma()),
}


@dataclass(frozen=True)
class Recipe:
    """Validated settings of one fit, by the estimators' names."""

    training: Literal["global", "grow", "greedy", "cart"] = "global"
    split: str | AbstractSplit = "linear"
    max_depth: int | None = 6
    init: str | Tree = "cart"
    search: bool | Auto = "auto"
    n_starts: int = 1
    weight_decay: float | Auto = "auto"
    max_iter: int | Auto = "auto"
    batch_size: int | Auto = "auto"
    learning_rate: float | Auto = "auto"
    solver: Literal["adam", "lbfgs"] = "adam"
    gradient: Literal["exact", "sampled"] = "exact"
    n_draws: int = 1
    l1: float = 0.0
    axis_penalty: float = 0.0
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
    max_features_per_split: int | None = None
    ccp_alpha: float = 0.0
    smoothing: float = 0.0
    leaves: Literal["constant", "linear"] = "constant"
    judge: str = "numbers"  # what the search counts on held-out rows: a name in JUDGES


@dataclass(frozen=True)
class Setting:
    """What the search may change."""

    depth: int | None
    decay: float = 0.1
    start: str | Tree = "cart"  # a name of STARTS, a tree, or "plain": CART itself, nothing refined


def trainer_of(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    """The chain that a recipe means for this data."""
    trainer = TRAININGS[recipe.training](recipe, source)  # a search judges by constants: level, and half the time
    return Chain([trainer, FitLines()]) if recipe.leaves == "linear" else trainer


def _cart(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    return Chain([_grow(recipe, recipe.max_depth), *_finish(recipe, refined=False)])


def _greedy(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    if recipe.split == Axis.name:
        return _cart(recipe, source)
    return Chain([_grow_greedily(recipe, source, recipe.max_depth), *_finish(recipe, refined=False)])


def _global(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    return _axis(recipe, source) if recipe.split == Axis.name else _slanted(recipe, source)


def _axis(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    """Exact local search, and plain CART where held-out rows do not like what it finds."""
    build = partial(_axis_trainer, recipe)
    if not _is_judged(recipe, source):
        return build(True, False)
    stages = [Stage(lambda best: [True], SEARCH_CAUTION)]
    return Select(False, stages, build, JUDGES[recipe.judge], _axis_folds(source.n))


def _axis_trainer(recipe: Recipe, is_searched: bool, quick: bool) -> AbstractTrainer:
    limits = (
        recipe.max_depth,
        recipe.min_samples_split,
        recipe.min_samples_leaf,
        recipe.min_impurity_decrease,
        recipe.max_leaf_nodes,
        recipe.max_bins,
    )
    rounds = ROUNDS if recipe.max_iter == "auto" else recipe.max_iter
    search = LocalSearch(max(rounds // QUICK, 1) if quick else rounds, *limits)
    start = [Given(recipe.init)] if isinstance(recipe.init, Tree) else []
    return Chain([*start, search if is_searched else _grow(recipe, recipe.max_depth), *_finish(recipe, refined=False)])


def _is_judged(recipe: Recipe, source: ArraySource) -> bool:
    """Whether held-out rows decide; never for a given tree, which has seen them."""
    if isinstance(recipe.init, Tree):
        return False
    return 20 <= source.n <= SEARCHED_ROWS if recipe.search == "auto" else bool(recipe.search)


def _axis_folds(n: int) -> Folds:
    return Folds(5, 5) if n < 2500 else Folds()


def _slanted(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    first = Setting(recipe.max_depth, _decay(recipe), recipe.init)
    build = _builder(recipe, source)
    if not searched(recipe, source):
        return build(first, False)
    stages = _stages(recipe, source.n)
    return Select(first, stages, build, JUDGES[recipe.judge], _folds(source.n))


def _evolving(recipe: Recipe, source: ArraySource) -> AbstractTrainer:
    """From two levels of CART."""
    depth = recipe.max_depth or 0
    evolve = Evolve(depth, split_of(recipe), _descent(recipe, source, _decay(recipe)))
    return Chain([_grow(recipe, min(depth, 2)), evolve, *_finish(recipe, refined=True)])


TRAININGS: dict[str, Callable[[Recipe, ArraySource], AbstractTrainer]] = {
    "global": _global,
    "grow": _evolving,
    "greedy": _greedy,
    "cart": _cart,
}


def searched(recipe: Recipe, source: ArraySource) -> bool:
    """Whether settings are searched: asked for, or cheap enough (and enough rows to judge by).

    Where a start is named it is the start, and the search, which chooses one, stays away. It never judges from a given
    tree, which has seen the rows that would be held out. Families without a kernel are an order of magnitude slower,
    and searched only where that is asked for.
    """
    if isinstance(recipe.init, Tree):
        return False
    if recipe.search != "auto":
        return bool(recipe.search)
    if recipe.init != "cart" or split_of(recipe).core_name is None:
        return False
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
    optimizer: Descend | Lbfgs = _descent(recipe, source, setting.decay, n_steps)
    if recipe.solver == "lbfgs":
        optimizer = Lbfgs(n_steps, setting.decay * 1e-2, recipe.tol * 1e-2)
    watch = None
    if recipe.early_stopping:
        watch = Watch(recipe.validation_fraction, recipe.n_iter_no_change, recipe.tol)
    depth = setting.depth if recipe.max_leaf_nodes is None else None
    refine = Refine(depth, split_of(recipe), optimizer, watch)
    return Chain([_start(recipe, source, setting), refine, *_thinned(recipe, source, setting, n_steps)])


def _thinned(recipe: Recipe, source: ArraySource, setting: Setting, n_steps: int) -> Sequence[AbstractTrainer]:
    """Few columns in each question, where that is asked for: pruning, and exact search among what is left."""
    most = recipe.max_features_per_split
    if most is None or most >= source.p:
        return ()
    descent = _descent(recipe, source, setting.decay)
    steps = max(1, round(STAGE * n_steps))
    sparsify = Sparsify(most, steps, descent.batch_size, STAGE_RATE * descent.rate, setting.decay)
    descend = CoordinateDescent(recipe.min_samples_split, recipe.min_samples_leaf, recipe.max_bins)
    return sparsify, Harden("soft", recipe.min_samples_leaf), Polish(descend)


def _start(recipe: Recipe, source: ArraySource, setting: Setting) -> AbstractTrainer:
    if isinstance(setting.start, Tree):
        return Given(setting.start)
    arity = split_of(recipe).arity
    if arity > 2 and setting.start != "random":  # questions with many answers have a start of their own
        return GrowCentroids(setting.depth or 1, arity)
    return STARTS[setting.start](recipe, source, setting.depth)


def _start_projected(recipe: Recipe, source: ArraySource, depth: int | None) -> AbstractTrainer:
    """CART where leaves are rationed, or depth is 0: a projected tree is complete."""
    return GrowProjected(depth) if depth and recipe.max_leaf_nodes is None else _grow(recipe, depth)


STARTS: dict[str, Callable[[Recipe, ArraySource, int | None], AbstractTrainer]] = {
    "cart": lambda recipe, source, depth: _grow(recipe, depth),
    "greedy": lambda recipe, source, depth: _grow_greedily(recipe, source, depth),
    "projected": _start_projected,
    "random": lambda recipe, source, depth: GrowRandom(depth or 0, split_of(recipe)),
}


def _grow_greedily(recipe: Recipe, source: ArraySource, depth: int | None) -> AbstractTrainer:
    first = Setting(1, _decay(recipe))
    stump = replace(recipe, max_depth=1, min_samples_split=2, max_leaf_nodes=None, early_stopping=False)
    stumps = [_refined(stump, source, replace(first, start=start), 300) for start in ("cart", "projected")]
    return GrowGreedy(
        [*stumps, _grow(stump, 1)],
        depth,
        recipe.min_samples_split,
        recipe.min_samples_leaf,
        recipe.min_impurity_decrease,
        recipe.max_leaf_nodes,
    )


def _refined_for_lines(recipe: Recipe, source: ArraySource, setting: Setting) -> list[AbstractTrainer]:
    """Fewer, smaller and shorter steps: the questions are good already, and each step solves a system per leaf."""
    if recipe.leaves == "constant":
        return []
    full = _descent(recipe, source, setting.decay)
    batch_size = 512 if recipe.batch_size == "auto" else recipe.batch_size
    steps = replace(full, n_steps=max(1, 3 * full.n_steps // 10), rate=full.rate / 3, batch_size=batch_size)
    return [RefineLines(split_of(recipe), steps)]


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


def _descent(recipe: Recipe, source: ArraySource, decay: float, n_steps: int | None = None) -> Descend:
    """Steps, batch and rate."""
    if n_steps is None:
        usual = 1000 if recipe.solver == "adam" else 200
        n_steps = usual if recipe.max_iter == "auto" else recipe.max_iter
    return Descend(
        n_steps,
        _batch_size(source.n) if recipe.batch_size == "auto" else recipe.batch_size,
        0.15 if recipe.learning_rate == "auto" else recipe.learning_rate,
        decay,
        engine=_engine(recipe, n_steps),
    )


def _engine(recipe: Recipe, n_steps: int) -> MakesEngine:
    """Gradients, and what follows each step."""
    plain = engine_for if recipe.gradient == "exact" else Sampled(recipe.n_draws)
    penalties: list[AbstractPenalty] = []
    if recipe.l1 > 0:
        penalties.append(Lasso(recipe.l1))
    if recipe.axis_penalty > 0:
        penalties.append(AxisPenalty(recipe.axis_penalty))
    return Penalised(plain, penalties, n_steps) if penalties else plain


def _batch_size(n: int) -> int:
    """About a quarter of the rows: smaller ones are too noisy for many leaves, larger ones learn the rows by heart."""
    return 512 if n < 4000 else 2048 if n < 12_000 else 4096 if n < 24_000 else 8192


def _decay(recipe: Recipe) -> float:
    return 0.1 if recipe.weight_decay == "auto" else recipe.weight_decay


def split_of(recipe: Recipe) -> AbstractSplit:
    """The family of a recipe's questions."""
    return recipe.split if isinstance(recipe.split, AbstractSplit) else SPLITS[recipe.split]()
