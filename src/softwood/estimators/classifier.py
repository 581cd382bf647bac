"""TreeClassifier: class labels in, class shares of the leaf out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from softwood.estimators._base import AbstractTreeEstimator, FloatArray
from softwood.estimators.class_weights import class_factors
from softwood.estimators.labels import labels_from_record, labels_record
from softwood.estimators.parameters import recipe_of, threads_of
from softwood.estimators.progress import Progress, with_callbacks
from softwood.estimators.target_units import TargetUnits
from softwood.estimators.teacher import averaged, taught
from softwood.estimators.validation import check_some_weight, read_training_rows, read_weight
from softwood.impurity import AbstractImpurity
from softwood.record import REMEDY, ModelFileError, Record, section
from softwood.source import ArraySource, canonical_rows
from softwood.split import AbstractSplit
from softwood.targets import CodedTargets, class_counts, soft_labels
from softwood.tree import Tree


class TreeClassifier(ClassifierMixin, AbstractTreeEstimator):
    """A small, accurate decision tree for classes, trained by gradient descent on the expected impurity.

    Questions are soft while the tree learns and hard when it answers: a row follows one path, and the class shares
    of its leaf are the answer.

    Parameters
    ----------
    max_depth : int or None, default=6
        The most questions on a path. None (no limit) is for ``training="cart"`` and ``"greedy"`` only.
    split : str or AbstractSplit, default="linear"
        What a question looks at. "linear": a weighted sum of the columns; "axis": one column, trained globally by exact
        local search in ``max_iter`` rounds, and greedily as CART (``training="cart"`` always asks so);
        "pretransform": a weighted sum of a few bent directions; "network": a small network; "flowing": columns that
        are bent anew at each node a row passes; "multiway": several weighted sums, the largest names the child;
        "kernel": how near a row is to landmarks; "layered": another kind at each depth. An instance of a family in
        ``softwood.split`` sets its parameters, for instance ``Pretransform(n_rows=6)``. Only "linear" and "axis" have
        compiled training and are searched by default.
    impurity : {"gini", "entropy"} or AbstractImpurity, default="gini"
        What training lowers: "gini" is the Brier score of the leaves' class shares, "entropy" their log loss.
    training : {"global", "grow", "greedy", "cart"}, default="global"
        "global" trains all questions of the tree at once by the exact gradient of the expected impurity, starting
        from a CART tree; "grow" does so from two levels on, growing where leaves stay impure and pruning what is
        useless on the way (it never searches and always takes Adam's steps); "greedy" trains one question after
        another, from the root down; "cart" searches each question exhaustively and always asks about one column.
    init : {"cart", "greedy", "projected", "random"}, Tree or fitted tree estimator, default="cart"
        Where global training starts: from a CART tree; from a tree of slanted questions trained one after another;
        from slanted questions that halve their rows; from questions drawn at random; or from the questions of a tree
        you have, whose depth must not exceed ``max_depth``. ``clone`` forgets what an estimator has fitted: in
        cross-validation give its ``tree_``. A model file keeps names, not trees.
    warm_start : bool, default=False
        Whether ``fit`` called again starts from the questions of the last tree instead of ``init``.
    search : bool or "auto", default="auto"
        Whether to choose weight decay, depth, start and plain CART itself by internal folds of the training data.
        "auto" searches where that is cheap, that is on small data, and ``init`` names no other start.
    n_starts : int, default=1
        How many starts global training tries; the one with the best objective is kept.
    weight_decay : float or "auto", default="auto"
        How strongly each step shrinks the weights of the questions.
    l1 : float, default=0.0
        How strongly each step pulls the weights of the questions to exact zeros; 0.1 to 0.3 leaves columns out.
    axis_penalty : float, default=0.0
        How strongly, rising to this by the last step, all weights of a question but its largest are shrunk; in the end
        they are set to 0, so that each question asks about one column. That loses points: ``training="cart"`` is
        often the better axis-aligned tree.
    max_iter : int or "auto", default="auto"
        Steps of global or greedy training.
    batch_size : int or "auto", default="auto"
        Rows of one step.
    learning_rate : float or "auto", default="auto"
        Length of the first steps; they shorten along half a cosine.
    solver : {"adam", "lbfgs"}, default="adam"
        Mini-batch Adam, or L-BFGS on all rows at once.
    gradient : {"exact", "sampled"}, default="exact"
        "exact" weighs every path a row might take; "sampled" lets each row walk down by chance in each step, which
        costs O(depth) instead of O(2^depth) and pays in trees deeper than about 10, at the price of noise.
    n_draws : int, default=1
        How many walks each row takes in a step of ``gradient="sampled"``; more are less noisy.
    early_stopping : bool, default=False
        Whether to hold rows out and keep the tree that is best on them.
    validation_fraction : float, default=0.1
        The share of rows that early stopping holds out.
    n_iter_no_change : int, default=10
        How many looks at the held-out rows may pass without improvement.
    tol : float, default=1e-4
        The least change of the objective per unit of weight that counts as improvement.
    min_samples_split : int, default=2
        The fewest rows a node needs to be asked a question.
    min_samples_leaf : int, default=1
        The fewest rows of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        The least share of all weight in a leaf, at most 0.5; a question with a lighter side is taken back and its
        rows take the other side. Useful with very uneven class weights.
    min_impurity_decrease : float, default=0.0
        The least decrease of impurity, per unit of all weight, that a question must bring.
    max_leaf_nodes : int or None, default=None
        The most leaves; the best questions are asked first.
    max_bins : int, default=255
        The most bins of a column, from 2 to 255. A column with no more distinct values keeps exact thresholds.
    max_features_per_split : int or None, default=None
        The most columns a slanted question looks at; all other weights are exactly 0. None is no limit. For
        ``training="global"`` and ``split="linear"``; for one column ``split="axis"`` finds better trees.
    ccp_alpha : float, default=0.0
        Cost-complexity pruning: the impurity per unit of all weight that one more leaf must be worth.
    smoothing : float, default=0.0
        Shrinks what leaves answer toward the nodes above them: what a node says beyond its parent is divided by
        1 + smoothing / weight of the parent.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; labels left out have 1. "balanced" gives every class
        the same total weight.
    routing : {"hard", "soft", "likeliest", "sampled"}, default="hard"
        How a row finds its answer: "hard" follows one path, at each question the likelier child; "soft" weights the
        class shares of all leaves by the probability of reaching them; "likeliest" takes the one leaf reached with
        the largest probability; "sampled" draws a leaf by these probabilities, from ``random_state`` and the row's
        content, so that equal rows draw the same. May be set after fitting.
    n_jobs : int or None, default=None
        Threads; None is 1 outside a joblib context and -1 all cores. The tree has the same bits whatever it is.
    random_state : int, RandomState instance or None, default=None
        The source of chance: an integer makes every fit the same.
    verbose : bool or int, default=0
        1 writes a line per tenth of the work to standard error. Callbacks of scikit-learn 1.9 and later
        (``set_callbacks``) hear of each tenth in any case.

    Attributes
    ----------
    tree_ : softwood.tree.Tree
        The tree: frozen arrays in the user's units, with the statistics of every node, here weights of
        the classes.
    classes_ : ndarray of shape (n_classes_,)
        The labels, sorted.
    n_classes_ : int
        How many there are.
    n_outputs_ : int
        1.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns, if all are strings.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much the questions lower the impurity, each question's part shared among its columns by the size of the
        weight times the spread of the column; sums to 1.
    history_ : ndarray of shape (n_steps,)
        The objective per unit of weight after each step.
    agreement_ : float
        How far hard and soft answers agree: the share of the training rows' weight given the same class by both
        (of at most 4096 rows). NaN after loading a file that does not say.
    seed_ : int
        What ``routing="sampled"`` draws from.
    n_iter_ : int
        Steps taken; 1 where training takes no steps.

    See Also
    --------
    TreeRegressor : The same for numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softwood.estimators import TreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = TreeClassifier(max_depth=2, training="cart").fit(X, y)
    >>> tree.get_depth()
    2
    """

    _impurities: ClassVar[tuple[str, ...]] = ("gini", "entropy")
    _encoding: ClassVar[str] = "classes"

    classes_: npt.NDArray[Any]
    n_classes_: int

    def __init__(
        self,
        *,
        max_depth: int | None = 6,
        split: str | AbstractSplit = "linear",
        impurity: str | AbstractImpurity = "gini",
        training: str = "global",
        init: str | Tree | BaseEstimator = "cart",
        warm_start: bool = False,
        search: bool | str = "auto",
        n_starts: int = 1,
        weight_decay: float | str = "auto",
        l1: float = 0.0,
        axis_penalty: float = 0.0,
        max_iter: int | str = "auto",
        batch_size: int | str = "auto",
        learning_rate: float | str = "auto",
        solver: str = "adam",
        gradient: str = "exact",
        n_draws: int = 1,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_bins: int = 255,
        max_features_per_split: int | None = None,
        ccp_alpha: float = 0.0,
        smoothing: float = 0.0,
        class_weight: Mapping[Any, float] | str | None = None,
        routing: str = "hard",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.split = split
        self.impurity = impurity
        self.training = training
        self.init = init
        self.warm_start = warm_start
        self.search = search
        self.n_starts = n_starts
        self.weight_decay = weight_decay
        self.l1 = l1
        self.axis_penalty = axis_penalty
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.solver = solver
        self.gradient = gradient
        self.n_draws = n_draws
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.max_features_per_split = max_features_per_split
        self.ccp_alpha = ccp_alpha
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.routing = routing
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def distill(self, teacher: Any, X: Any, sample_weight: Any = None, *, y: Any = None) -> Self:
        """Fit the tree to another classifier's class probabilities instead of labels.

        The rows need no labels, and may be more than the teacher was fitted to: the tree learns what the teacher
        would say. ``class_weight`` multiplies the probabilities of the classes.

        Parameters
        ----------
        teacher : object
            A fitted classifier with ``predict_proba``, for instance a random forest.
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows, with the columns that the teacher was fitted to.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of k is the row k times; a row of weight 0 is not there.
        y : array-like of shape (n_samples,), default=None
            True labels, where they are known: the tree is then fitted halfway between them and the teacher.

        Returns
        -------
        self : object
            The fitted estimator, its ``classes_`` those of the teacher.
        """
        recipe = recipe_of(self.get_params(deep=False))
        rows = read_training_rows(self, X)
        weight = read_weight(sample_weight, rows.shape[0])
        Q, classes = taught(teacher, X, rows.shape[1])
        self._set_classes(classes)
        key = np.zeros(len(rows), dtype=np.int64)
        if y is not None:
            Q, key = averaged(Q, y, classes)
        Q, weight = self._weighted(Q, weight)
        n_threads = threads_of(self.n_jobs)
        order, copies, content, weight = canonical_rows(rows, key, weight, n_threads)
        source = ArraySource(rows, order, copies, content, soft_labels(Q[order], weight), n_threads)
        self._grow(source, TargetUnits(), recipe, Progress(self, X, None, 1.0))
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels from ``classes_``; of equally likely classes the first.
        """
        choices = self._asked(X, lambda routing: routing.choices)
        labels: npt.NDArray[Any] = self.classes_[choices]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class shares of each row's leaf, or of all leaves by ``routing="soft"``.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes_)
            Columns in the order of ``classes_``; each row sums to 1.
        """
        return self._asked(X, lambda routing: routing.answers)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_shares : ndarray of shape (n_samples, n_classes_)
            Minus infinity for a class that the leaf has not seen.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def to_record(self) -> Record:
        return super().to_record() | {"classes": labels_record(self.classes_)}

    @classmethod
    def from_record(cls, record: Record) -> TreeClassifier:
        tree = super().from_record(record)
        tree._set_classes(labels_from_record(section(record, "classes")))
        if tree.tree_.values.shape[1] != tree.n_classes_:
            raise ModelFileError(f"values must have one number for each of the {tree.n_classes_} classes. {REMEDY}")
        return tree

    def _key(self, y: Any, weight: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        self._set_classes(classes)
        count = np.bincount(codes, weight, classes.size).astype(np.float64)
        factors = class_factors(self.class_weight, classes, count)
        if factors is not None:
            weight = weight * factors[codes]
            check_some_weight(weight)
        return codes, weight

    def _targets(self, key: npt.NDArray[Any], weight: FloatArray) -> tuple[CodedTargets, TargetUnits]:
        return class_counts(key, self.n_classes_, weight), TargetUnits()

    def _weighted(self, Q: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Class probabilities and weights of rows with the factors of ``class_weight`` in them."""
        factors = class_factors(self.class_weight, self.classes_, weight @ Q)
        if factors is None:
            return Q, weight
        Q = Q * factors
        whole = Q.sum(axis=1)
        weight = weight * whole
        check_some_weight(weight)
        return Q / np.where(whole > 0, whole, 1.0)[:, None], weight

    def _set_classes(self, classes: npt.NDArray[Any]) -> None:
        self.classes_, self.n_classes_ = classes, int(classes.size)
