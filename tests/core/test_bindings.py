"""The compiled border: lengths, indices and types are checked before a kernel sees an array."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softwood import _core

N, P = 6, 3
KERNELS = ("row_hash", "column_moments", "standardise", "route")


def arguments(kernel: str) -> dict[str, Any]:
    """A call that is right, by name."""
    rows: dict[str, Any] = {"X": np.arange(N * P, dtype=np.float64).reshape(N, P), "n_threads": 1}
    order = np.arange(N)
    if kernel == "column_moments":
        rows |= {"order": order, "weight": np.ones(N)}
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


@pytest.mark.parametrize(
    ("kernel", "name", "value", "message"),
    WRONG,
    ids=[f"{kernel}, {name} {index}" for index, (kernel, name, *_) in enumerate(WRONG)],
)
def test_wrong_lengths_and_indices_are_refused(kernel: str, name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(_core, kernel)(**{**arguments(kernel), name: value})


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "X",
    [
        np.zeros(N),
        np.zeros((N, P, 1)),
        np.zeros((N, P), dtype=np.int64),
        np.zeros((N, P), dtype=np.float16),
        np.zeros((N, P), dtype=complex),
        np.zeros((P, N)).T,
        np.zeros((N, 2 * P))[:, ::2],
        [[0.0] * P] * N,
        None,
    ],
    ids=["one axis", "three axes", "integers", "half", "complex", "columns first", "strided", "a list", "nothing"],
)
def test_rows_of_another_type_or_layout_are_refused(kernel: str, X: Any) -> None:
    """Never a silent copy of a table that may be most of the memory."""
    with pytest.raises(TypeError, match="incompatible function arguments"):
        getattr(_core, kernel)(**{**arguments(kernel), "X": X})


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_read_and_never_written(kernel: str, dtype: type) -> None:
    values = arguments(kernel)
    values["X"] = values["X"].astype(dtype)
    before = {name: np.array(value) for name, value in values.items()}
    for value in values.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    getattr(_core, kernel)(**values)
    assert all((before[name] == values[name]).all() for name in values)


@pytest.mark.parametrize("kernel", ["row_hash", "standardise", "route"])
def test_no_rows_give_no_answers(kernel: str) -> None:
    values = {**arguments(kernel), "X": np.zeros((0, P))}
    if "order" in values:
        values["order"] = np.zeros(0, dtype=np.int64)
    assert getattr(_core, kernel)(**values).shape[0] == 0


def test_moments_of_no_rows_are_refused() -> None:
    values = {**arguments("column_moments"), "order": np.zeros(0, dtype=np.int64), "weight": np.zeros(0)}
    with pytest.raises(ValueError, match="order and weight need one entry per row"):
        _core.column_moments(**values)
