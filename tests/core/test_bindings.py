"""The compiled border: lengths, indices and types are checked before a kernel sees an array."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softwood import _core

N, P, D = 6, 3, 4
ROWS = {  # kernel -> its table of rows
    "row_hash": "X",
    "column_moments": "X",
    "standardise": "X",
    "route": "X",
    "make_bins": "X",
    "grow_coded": "codes",
    "grow_dense": "codes",
    "descend": "Z",
    "sample_descend": "Z",
    "leaf_sums": "Z",
    "gradient": "Z",
}
KERNELS = tuple(ROWS)
DESCENTS = ("descend", "sample_descend")
WRITTEN = {"theta", "mean", "square", "leaf_of"}  # what a descent changes in place


def arguments(kernel: str) -> dict[str, Any]:
    """A call that is right, by name."""
    if kernel.startswith("grow"):
        return growth(kernel)
    if ROWS[kernel] == "Z":
        return sweeps(kernel)
    rows: dict[str, Any] = {"X": np.arange(N * P, dtype=np.float64).reshape(N, P), "n_threads": 1}
    order = np.arange(N)
    if kernel in ("column_moments", "make_bins"):
        rows |= {"order": order, "weight": np.ones(N)}
    if kernel == "make_bins":
        rows |= {"max_bins": 4}
    if kernel == "standardise":
        rows |= {"order": order, "center": np.zeros(P), "per_scale": np.ones(P)}
    if kernel == "route":  # a threshold question, and a linear one as its child 0
        rows |= {
            "first_child": np.array([1, 3, 0, 0, 0], dtype=np.int32),
            "kind": np.array([0, 1, -1, -1, -1], dtype=np.int8),
            "row": np.array([0, 0, 0, 0, 0], dtype=np.int32),
            "feature": np.array([1], dtype=np.int32),
            "threshold": np.array([5.0]),
            "weights": np.ones((1, P)),
            "bias": np.array([-4.0]),
        }
    return rows


def growth(kernel: str) -> dict[str, Any]:
    """Two bins in each of three columns; the first column knows the answer."""
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 1, 0]], dtype=np.uint8)
    given: dict[str, Any] = {
        "codes": codes,
        "offsets": np.array([0, 2, 4, 6]),
        "low": np.array([0.0, 2.0] * P),
        "high": np.array([0.0, 2.0] * P),
        "copies": np.ones(N, dtype=np.int32),
        "impurity": "gini",
        "parameter": 0.0,
        "limits": (-1, -1, 2.0, 1.0, 0.0),
        "n_threads": 1,
    }
    if kernel == "grow_dense":
        return given | {"s": np.eye(2)[codes[0].astype(int)]}
    return given | {"classes": codes[0].astype(np.int32), "weights": np.ones(N), "n_classes": 2}


def sweeps(kernel: str) -> dict[str, Any]:
    """Three questions, four leaves, statistics of D classes."""
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "theta": rng.normal(size=3 * (P + 1)).astype(np.float32),
        "Z": rng.normal(size=(N, P)).astype(np.float32),
        "codes": np.arange(N, dtype=np.int32) % D,
        "s": np.ones(N, dtype=np.float32),
        "d": D,
        "first_child": np.array([1, 3, 0, 5, 0, 0, 0], dtype=np.int32),
        "n_threads": 1,
    }
    if kernel == "gradient":
        rows |= {"slope": rng.normal(size=(4, D)).astype(np.float32)}
    if kernel in DESCENTS:
        rows |= {
            "mean": np.zeros(3 * (P + 1), dtype=np.float32),
            "square": np.zeros(3 * (P + 1), dtype=np.float32),
            "step": 0,
            "batches": np.array([[0, 1, 2, 3], [5, 4, 3, 2]], dtype=np.int32),
            "rates": np.array([0.1, 0.05], dtype=np.float32),
            "decay": 0.1,
            "beta1": 0.9,
            "beta2": 0.99,
            "epsilon": 1e-8,
            "impurity": "gini",
            "reg_lambda": 0.0,
        }
        rows |= {"n_draws": 2, "seed": 5} if kernel == "sample_descend" else lazily()
    return rows


def test_every_kernel_has_a_test_beside_this_one() -> None:
    """Named here, or called as _core.name in another file of this folder."""
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py")]
    called = {name for text in texts for name in re.findall(r"_core\.(\w+)", text)}
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public - called - set(KERNELS) == set()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_right_call_is_answered(kernel: str) -> None:
    getattr(_core, kernel)(**arguments(kernel))


def test_the_right_tree_is_walked() -> None:
    assert _core.route(**arguments("route")).tolist() == [3, 4, 2, 2, 2, 2]


def lazily() -> dict[str, Any]:
    """What lazy sweeps need besides."""
    return {"rank": np.arange(4, dtype=np.int32), "leaf_of": np.zeros(N, dtype=np.int32), "tolerance": 0.0}


def changed(array: np.ndarray, where: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[where] = value
    return array


WRONG: list[tuple[str, str, Any, str]] = [
    ("column_moments", "weight", np.ones(N - 1), "order and weight need one entry per row"),
    ("column_moments", "order", np.arange(N - 1), "order and weight need one entry per row"),
    ("column_moments", "order", np.array([0, 1, 2, 3, 4, N]), "order names a row outside X"),
    ("column_moments", "order", np.array([-1, 1, 2, 3, 4, 5]), "order names a row outside X"),
    ("standardise", "center", np.zeros(P + 1), "units need one entry per column"),
    ("standardise", "per_scale", np.ones(P - 1), "units need one entry per column"),
    ("standardise", "order", np.array([0, N]), "order names a row outside X"),
    ("standardise", "order", np.array([2**40]), "order names a row outside X"),
    ("standardise", "order", np.array([-(2**62)]), "order names a row outside X"),
    ("route", "kind", np.zeros(4, dtype=np.int8), "a tree needs one entry per node"),
    ("route", "row", np.zeros(6, dtype=np.int32), "a tree needs one entry per node"),
    ("route", "first_child", np.zeros(0, dtype=np.int32), "a tree needs one entry per node"),
    ("route", "first_child", np.array([1, 4, 0, 0, 0], dtype=np.int32), "a child is outside the tree"),
    ("route", "first_child", np.array([1, 1, 0, 0, 0], dtype=np.int32), "a child is outside the tree"),
    ("route", "first_child", np.array([-1, 3, 0, 0, 0], dtype=np.int32), "a child is outside the tree"),
    ("route", "first_child", np.array([2**31 - 1, 3, 0, 0, 0], dtype=np.int32), "a child is outside the tree"),
    ("route", "kind", np.array([2, 1, -1, -1, -1], dtype=np.int8), "a question is of an unknown kind"),
    ("route", "kind", np.array([-1, 1, -1, -1, -1], dtype=np.int8), "a question is of an unknown kind"),
    ("route", "row", np.array([1, 0, 0, 0, 0], dtype=np.int32), "a question is outside its table"),
    ("route", "row", np.array([0, -1, 0, 0, 0], dtype=np.int32), "a question is outside its table"),
    ("route", "feature", np.array([P], dtype=np.int32), "a feature is outside X"),
    ("route", "feature", np.array([-1], dtype=np.int32), "a feature is outside X"),
    ("route", "threshold", np.zeros(2), "one threshold per feature"),
    ("route", "weights", np.ones((1, P + 1)), "one weight per column"),
    ("route", "weights", np.ones((2, P)), "one weight per column"),
]
WRONG += [
    ("make_bins", "weight", np.ones(N - 1), "order and weight need one entry per row"),
    ("make_bins", "order", np.zeros(0, dtype=np.int64), "order and weight need one entry per row"),
    ("make_bins", "order", np.array([0, 1, 2, 3, 4, N]), "order names a row outside X"),
    ("make_bins", "order", np.array([-1, 1, 2, 3, 4, 5]), "order names a row outside X"),
    ("make_bins", "max_bins", 1, "max_bins must be between 2 and 255"),
    ("make_bins", "max_bins", 256, "max_bins must be between 2 and 255"),
]
for kernel in ("grow_coded", "grow_dense"):
    WRONG += [
        (kernel, "codes", np.zeros((P, 0), dtype=np.uint8), "codes need between 1 and"),
        (kernel, "codes", np.zeros((P, N - 1), dtype=np.uint8), "copies need one entry per row"),
        (kernel, "codes", np.full((P, N), 2, dtype=np.uint8), "a code is outside its column's bins"),
        (kernel, "codes", np.zeros((P + 1, N), dtype=np.uint8), "offsets need one entry per column and one more"),
        (kernel, "offsets", np.array([0, 2, 4]), "offsets need one entry per column and one more"),
        (kernel, "offsets", np.array([1, 2, 4, 6]), "offsets need one entry per column and one more"),
        (kernel, "offsets", np.array([0, 2, 4, 7]), "offsets must end with the number of bins"),
        (kernel, "offsets", np.array([0, 2, 2, 6]), "a column needs between 1 and 256 bins"),
        (kernel, "offsets", np.array([0, 4, 2, 6]), "a column needs between 1 and 256 bins"),
        (kernel, "low", np.zeros(5), "bins need a low and a high value each"),
        (kernel, "high", np.zeros(7), "bins need a low and a high value each"),
        (kernel, "copies", np.ones(N + 1, dtype=np.int32), "copies need one entry per row"),
        (kernel, "copies", np.array([1, 1, 0, 1, 1, 1], dtype=np.int32), "every row stands for at least one"),
        (kernel, "limits", (-1, -1, 2.0, 1.0), "limits need five numbers"),
    ]
WRONG += [
    ("grow_coded", "classes", np.zeros(N - 1, dtype=np.int32), "classes and weights need one entry per row"),
    ("grow_coded", "weights", np.ones(N + 1), "classes and weights need one entry per row"),
    ("grow_coded", "classes", np.full(N, 2, dtype=np.int32), "a class code is outside"),
    ("grow_coded", "classes", np.full(N, -1, dtype=np.int32), "a class code is outside"),
    ("grow_coded", "n_classes", 0, "n_classes must be at least 1"),
    ("grow_coded", "impurity", "variance", "class codes go with the impurities gini and entropy"),
    ("grow_dense", "s", np.ones((N - 1, 2)), "s needs one row per row and at least one column"),
    ("grow_dense", "s", np.ones((N, 0)), "s needs one row per row and at least one column"),
    ("grow_dense", "impurity", "variance", "variance needs three statistics per row"),
    ("grow_dense", "impurity", "poisson", "poisson needs three statistics per row"),
    ("grow_dense", "impurity", "mean", "the compiled impurities are"),
]
for kernel in (*DESCENTS, "leaf_sums", "gradient"):
    WRONG += [
        (kernel, "Z", np.zeros((N, P + 1), dtype=np.float32), r"theta must be \(questions, p \+ 1\)"),
        (kernel, "Z", np.zeros((N, 0), dtype=np.float32), "Z needs at least one column"),
        (kernel, "Z", np.zeros((N + 1, P), dtype=np.float32), "codes and weights need one entry per row"),
        (kernel, "theta", np.zeros(11, dtype=np.float32), r"theta must be \(questions, p \+ 1\)"),
        (kernel, "codes", np.zeros(N - 1, dtype=np.int32), "codes and weights need one entry per row"),
        (kernel, "codes", np.full(N, D, dtype=np.int32), "a code is outside"),
        (kernel, "codes", np.full(N, -1, dtype=np.int32), "a code is outside"),
        (kernel, "codes", None, r"s must be \(rows, d\)"),
        (kernel, "s", np.ones(N + 1, dtype=np.float32), "codes and weights need one entry per row"),
        (kernel, "s", np.ones((N, D), dtype=np.float32), "codes and weights need one entry per row"),
        (kernel, "d", 0, "statistics need at least one number per row"),
        (kernel, "d", -3, "statistics need at least one number per row"),
        (kernel, "first_child", np.zeros(1, dtype=np.int32), "at least one question"),
        (kernel, "first_child", np.zeros(0, dtype=np.int32), "at least one question"),
        (kernel, "first_child", np.array([1, 3, 0, 5, 0, 0], dtype=np.int32), "two children per question"),
        (kernel, "first_child", np.array([1, 3, 0, 5, 0, 0, 0, 0], dtype=np.int32), "no stray nodes"),
        (kernel, "first_child", np.array([1, 4, 0, 6, 0, 0, 0, 0, 0], dtype=np.int32), "two children per question"),
        (kernel, "first_child", np.array([1, 1, 0, 3, 0, 0, 0], dtype=np.int32), "two children per question"),
        (kernel, "first_child", np.array([-1, 3, 0, 5, 0, 0, 0], dtype=np.int32), "two children per question"),
    ]
WRONG += [
    ("gradient", "slope", np.zeros((3, D), dtype=np.float32), r"slope must be \(leaves, d\)"),
    ("gradient", "slope", np.zeros((4, D + 1), dtype=np.float32), r"slope must be \(leaves, d\)"),
    ("sample_descend", "n_draws", 0, "n_draws must be from 1"),
    ("sample_descend", "n_draws", 2**24, "n_draws must be from 1"),
    ("sample_descend", "n_draws", -1, "n_draws must be from 1"),
    ("descend", "square", np.zeros(13, dtype=np.float32), "Adam's memory must match theta"),
    ("descend", "batches", np.zeros((2, 0), dtype=np.int32), "at least one row per batch"),
    ("descend", "batches", np.array([[0, 1], [-1, 2]], dtype=np.int32), "a batch names a row outside the data"),
    ("descend", "rank", np.arange(3, dtype=np.int32), "one rank per leaf"),
    ("descend", "rank", np.array([0, 1, 2, 4], dtype=np.int32), "a rank is outside the leaves"),
    ("descend", "rank", np.array([0, 1, 2, -1], dtype=np.int32), "a rank is outside the leaves"),
    ("descend", "leaf_of", np.zeros(N - 1, dtype=np.int32), "one leaf per row"),
    ("descend", "leaf_of", np.full(N, 4, dtype=np.int32), "a row's leaf is outside the leaves"),
    ("descend", "leaf_of", np.full(N, -1, dtype=np.int32), "a row's leaf is outside the leaves"),
    ("descend", "impurity", "variance", "variance needs s of three numbers"),
    ("descend", "impurity", "gamma", "gamma needs s of three numbers"),
    ("descend", "impurity", "linear", "impurity must be gini, entropy, variance, poisson, gamma or newton"),
]
for kernel in DESCENTS:
    WRONG += [
        (kernel, "batches", np.array([[0, 1], [N, 2]], dtype=np.int32), "a batch names a row outside the data"),
        (kernel, "mean", np.zeros(11, dtype=np.float32), "Adam's memory must match theta"),
        (kernel, "rates", np.zeros(3, dtype=np.float32), "one rate per batch"),
    ]


@pytest.mark.parametrize(
    ("kernel", "name", "value", "message"),
    WRONG,
    ids=[f"{kernel}, {name} {index}" for index, (kernel, name, *_) in enumerate(WRONG)],
)
def test_wrong_lengths_and_indices_are_refused(kernel: str, name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(_core, kernel)(**{**arguments(kernel), name: value})


@pytest.mark.parametrize("kernel", ["descend", "leaf_sums", "gradient"])
def test_dense_statistics_of_another_shape_are_refused(kernel: str) -> None:
    for shape in ((N - 1, D), (N, D + 1), (N, D, 1)):
        with pytest.raises(ValueError, match=r"s must be \(rows, d\)"):
            getattr(_core, kernel)(**arguments(kernel) | {"codes": None, "s": np.ones(shape, dtype=np.float32)})


def test_newton_needs_a_gradient_and_a_hessian_of_each_output() -> None:
    pairs = {"impurity": "newton", "s": np.ones((N, 3))}
    with pytest.raises(ValueError, match="newton needs an even number of statistics"):
        _core.grow_dense(**arguments("grow_dense") | pairs)
    pairs |= {"s": np.ones((N, 3), dtype=np.float32), "d": 3, "codes": None}
    with pytest.raises(ValueError, match=r"newton \(even d\)"):
        _core.descend(**arguments("descend") | pairs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.ravel(),
        lambda rows: rows[..., None],
        lambda rows: rows.astype(np.int64),
        lambda rows: rows.astype(np.float16),
        lambda rows: rows.astype(complex),
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
        lambda rows: rows.tolist(),
        lambda rows: None,
    ],
    ids=["one axis", "three axes", "integers", "half", "complex", "columns first", "strided", "a list", "nothing"],
)
def test_rows_of_another_type_or_layout_are_refused(kernel: str, change: Any) -> None:
    """Never a silent copy of a table that may be most of the memory."""
    values = arguments(kernel)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        getattr(_core, kernel)(**values | {ROWS[kernel]: change(values[ROWS[kernel]])})


@pytest.mark.parametrize("name", sorted(WRITTEN))
@pytest.mark.parametrize("change", [lambda a: a.astype(np.float64), lambda a: np.repeat(a, 2)[::2], np.ndarray.tolist])
def test_what_is_written_is_never_a_copy(name: str, change: Any) -> None:
    values = arguments("descend")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.descend(**values | {name: change(values[name])})
    values[name].setflags(write=False)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.descend(**values)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_read_and_never_written(kernel: str, dtype: type) -> None:
    values, written = arguments(kernel), WRITTEN if kernel in DESCENTS else set()
    if ROWS[kernel] == "X":
        values["X"] = values["X"].astype(dtype)
    before = {name: np.array(value) for name, value in values.items()}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and name not in written:
            value.setflags(write=False)
    getattr(_core, kernel)(**values)
    assert all(np.array_equal(before[name], values[name]) for name in values.keys() - written)


@pytest.mark.parametrize("kernel", ["row_hash", "standardise", "route"])
def test_no_rows_give_no_answers(kernel: str) -> None:
    values = {**arguments(kernel), "X": np.zeros((0, P))}
    if "order" in values:
        values["order"] = np.zeros(0, dtype=np.int64)
    assert getattr(_core, kernel)(**values).shape[0] == 0


@pytest.mark.parametrize("kernel", ["leaf_sums", "gradient"])
def test_sums_over_no_rows_are_zero(kernel: str) -> None:
    nothing = {"Z": np.zeros((0, P), np.float32), "codes": np.zeros(0, np.int32), "s": np.zeros(0, np.float32)}
    sums = getattr(_core, kernel)(**arguments(kernel) | nothing)
    assert sums.size > 0 and (sums == 0).all()


def test_no_steps_change_nothing() -> None:
    values = arguments("descend") | {"batches": np.zeros((0, 4), np.int32), "rates": np.zeros(0, np.float32)}
    before = {name: values[name].copy() for name in WRITTEN}
    objective, _ = _core.descend(**values)
    assert objective.size == 0 and all((values[name] == before[name]).all() for name in WRITTEN)


def test_moments_of_no_rows_are_refused() -> None:
    values = {**arguments("column_moments"), "order": np.zeros(0, dtype=np.int64), "weight": np.zeros(0)}
    with pytest.raises(ValueError, match="order and weight need one entry per row"):
        _core.column_moments(**values)
