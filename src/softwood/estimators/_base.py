"""What both estimators share: from the user's X, y and weights to a tree, and the questions one asks of a tree.

``fit`` is one line of stations: parameters -> checked arrays -> rows in canonical order -> targets -> trainer ->
the tree in the user's units. Classes differ in how y becomes a target and a leaf becomes an answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from softwood.answers import AbstractRouting, agreement, routing_of
from softwood.estimators.importances import feature_importances
from softwood.estimators.parameters import check_parameter, generator_of, recipe_of, threads_of
from softwood.estimators.progress import CallbackSupportMixin, Progress, with_callbacks
from softwood.estimators.record import estimator_record, restored
from softwood.estimators.start import start_of
from softwood.estimators.target_units import TargetUnits
from softwood.estimators.validation import check_finite, read_rows, read_training, read_weight
from softwood.impurity import IMPURITIES, AbstractImpurity
from softwood.source import ArraySource, canonical_rows
from softwood.targets import AbstractTargets
from softwood.train.base import Run, root
from softwood.train.prune import pruning_path
from softwood.train.recipe import Recipe, trainer_of
from softwood.tree import Tree

FloatArray = npt.NDArray[np.float64]
Found = TypeVar("Found", bound=npt.NDArray[Any])
Ask = Callable[[Tree, npt.NDArray[Any], int], Found | None]
AGREEMENT_ROWS = 4096  # training rows that tell how far hard and soft answers agree


class AbstractTreeEstimator(CallbackSupportMixin, BaseEstimator, ABC):
    """One tree behind scikit-learn's methods."""

    impurity: str | AbstractImpurity
    training: str
    routing: str
    init: str | Tree | BaseEstimator
    warm_start: bool
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: bool | int

    tree_: Tree
    n_features_in_: int
    n_outputs_: int
    n_iter_: int
    history_: FloatArray
    feature_importances_: FloatArray
    agreement_: float
    seed_: int

    _impurities: ClassVar[tuple[str, ...]]  # the names that fit this kind of target
    _encoding: ClassVar[str]  # what y becomes for an impurity that does not say what it reads

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a tree to rows and their targets.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows: finite numbers. float32 and float64 in C order are read where they are; everything else is
            converted once.
        y : array-like of shape (n_samples,)
            The targets: class labels of any kind for a classifier, numbers for a regressor.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k is the row k times; a row of weight 0 is not there.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        recipe = recipe_of(self.get_params(deep=False))
        source, units = self._read(X, y, sample_weight)
        self._grow(source, units, recipe, Progress(self, X, y, units.per_impurity))
        return self

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the number of the leaf that answers each row: by ``routing="soft"`` the one with most to say.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        leaves : ndarray of shape (n_samples,)
            Node numbers in ``tree_``.
        """
        return self._leaf(X).astype(np.int64)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return which nodes each row passes on the path to its leaf, the one that ``apply`` returns.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        path : sparse CSR matrix of shape (n_samples, n_nodes)
            1 where a row passes a node, the root and the leaf included.
        """
        leaf = self._leaf(X)
        topology = self.tree_.topology
        passed = np.full((topology.n_nodes, topology.depth + 1), -1, dtype=np.int64)  # from the root down
        for depth, level in enumerate(topology.levels):
            nodes = np.arange(level.start, level.stop)
            passed[nodes, :depth] = passed[topology.parent[nodes], :depth] if depth else 0
            passed[nodes, depth] = nodes
        columns = passed[leaf]
        starts = np.concatenate([[0], np.cumsum(topology.level_of[leaf] + 1)])
        columns = columns[columns >= 0]
        return csr_matrix((np.ones(columns.size, dtype=np.int64), columns, starts), shape=(leaf.size, topology.n_nodes))

    def get_depth(self) -> int:
        """Return the number of questions on the longest path.

        Returns
        -------
        depth : int
            0 for a tree of one leaf.
        """
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        n_leaves : int
            At least 1.
        """
        check_is_fitted(self)
        return self.tree_.n_leaves

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the values of ``ccp_alpha`` at which the tree grown with 0 loses its weakest branch.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights.

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, increasing from 0, and ``impurities``, the impurity of the leaves per unit of weight
            once branches worth no more than each alpha are gone.
        """
        unpruned = clone(self).set_params(ccp_alpha=0.0)
        recipe = recipe_of(unpruned.get_params(deep=False))
        source, units = unpruned._read(X, y, sample_weight)
        tree = unpruned._trained(source, units, recipe, Run(generator_of(self.random_state), source.n_threads))
        alphas, impurities = pruning_path(tree, self._impurity(), float(source.targets.weight.sum()))
        return Bunch(ccp_alphas=alphas * units.per_impurity, impurities=impurities * units.per_impurity)

    def to_record(self) -> dict[str, Any]:
        """Return the fitted estimator as plain JSON types, for a model file.

        Returns
        -------
        record : dict
            What ``from_record`` reads back.
        """
        check_is_fitted(self)
        return estimator_record(self)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Make a fitted estimator from what ``to_record`` returned; nothing in the record is trusted or executed.

        Parameters
        ----------
        record : dict
            Plain JSON types.

        Returns
        -------
        estimator : object
            Ready to predict.
        """
        return restored(cls, record)

    @abstractmethod
    def _key(self, y: Any, weight: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """The numbers that tell targets apart, and the weights with everything that multiplies them."""

    @abstractmethod
    def _targets(self, key: npt.NDArray[Any], weight: FloatArray) -> tuple[AbstractTargets, TargetUnits]:
        """Statistics of the rows, and the way back to the user's units."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[ArraySource, TargetUnits]:
        """The border: after it everything is checked, typed and in canonical order."""
        n_threads = threads_of(self.n_jobs)
        X, y = read_training(self, X, y)
        key, weight = self._key(y, read_weight(sample_weight, X.shape[0]))
        order, copies, content, weight = canonical_rows(X, key, weight, n_threads)
        targets, units = self._targets(key[order], weight)
        return ArraySource(X, order, copies, content, targets, n_threads), units

    def _grow(self, source: ArraySource, units: TargetUnits, recipe: Recipe, progress: Progress) -> None:
        impurity = self._impurity()
        run = Run(generator_of(self.random_state), source.n_threads, progress)
        tree = self._trained(source, units, recipe, run)
        progress(1.0, run.history[-1] if run.history else objective(tree, impurity, source))
        self.tree_, self.n_outputs_ = units.outwards(tree), 1
        self.seed_ = int(run.rng.integers(2**31))
        self.agreement_ = agreement_of(tree, source, is_classes=self._encoding == "classes")
        self.history_ = np.asarray(run.history, dtype=np.float64) * units.per_impurity
        self.n_iter_ = max(1, len(run.history))
        spread = np.ones(source.p) if self.training == "cart" else source.units.scale
        self.feature_importances_ = feature_importances(self.tree_, impurity, spread)
        progress.close()

    def _trained(self, source: ArraySource, units: TargetUnits, recipe: Recipe, run: Run) -> Tree:
        """The tree in the trainer's units."""
        impurity = self._impurity()
        recipe = replace(recipe, init=start_of(self, recipe, source.p))
        tree = root(source, impurity)
        if recipe.max_depth == 0 or not can_gain(source, impurity):
            return tree
        recipe = replace(units.inwards(recipe), judge=impurity.encoding or self._encoding)
        return trainer_of(recipe, source).train(tree, source, impurity, run)

    def _impurity(self) -> AbstractImpurity:
        given = self.impurity
        if isinstance(given, AbstractImpurity):
            self._check_readable(given)
            return given
        if isinstance(given, str) and given in self._impurities:
            return IMPURITIES[given]()
        names = ", ".join(map(repr, self._impurities))
        raise ValueError(f"impurity must be one of {names} or an instance of AbstractImpurity; got {given!r}.")

    def _check_readable(self, impurity: AbstractImpurity) -> None:
        """Refuse an impurity that reads other statistics than this estimator makes of y."""
        made = {IMPURITIES[name].encoding for name in self._impurities}
        if impurity.encoding not in {None, *made}:
            raise ValueError(
                f"impurity={impurity!r} reads statistics of the encoding {impurity.encoding!r}, which "
                f"{type(self).__name__} does not make of y. Use one of {', '.join(map(repr, self._impurities))}."
            )

    def _leaf(self, X: Any) -> npt.NDArray[np.int32]:
        return self._asked(X, lambda routing: routing.leaf)

    def _asked(self, X: Any, ask: Callable[[AbstractRouting], Ask[Found]]) -> Found:
        """What the routing finds for rows; routing knows first whether they are finite."""
        check_is_fitted(self)
        check_parameter("routing", self.routing)
        X = read_rows(self, X)
        routing = routing_of(self.routing, self.seed_, self.tree_)
        found = ask(routing)(self.tree_, X, threads_of(self.n_jobs))
        if found is None:
            check_finite(self, X)
        assert found is not None
        return found


def agreement_of(tree: Tree, source: ArraySource, *, is_classes: bool) -> float:
    """How far hard and soft answers agree on a sample of the training rows that does not depend on chance."""
    sample = slice(None, None, -(-source.n // AGREEMENT_ROWS))
    return agreement(tree, source.X[source.order[sample]], source.targets.weight[sample], is_classes)


def can_gain(source: ArraySource, impurity: AbstractImpurity) -> bool:
    """Whether a question could lower the impurity: not where all rows or all targets are the same."""
    per_weight = float(impurity.phi(source.targets.total())) / source.targets.weight.sum()
    differ = bool((source.content != source.content[0]).any())
    return differ and (impurity.splits_pure or per_weight > 1e-14)


def objective(tree: Tree, impurity: AbstractImpurity, source: ArraySource) -> float:
    """Impurity of the leaves per unit of weight."""
    phi = np.asarray(impurity.phi(tree.statistics), dtype=np.float64)
    return float(phi[tree.topology.leaves].sum() / source.targets.weight.sum())
