"""The tree as text: names, units, rows and answers as they are, folded where asked."""

from __future__ import annotations

import numpy as np
import pytest

from softwood.export import tree_text
from softwood.question import Linears, Thresholds
from softwood.topology import Topology
from softwood.tree import Tree

NAMES = ["age", "income", "debt", "rooms"]


def classifier_tree() -> Tree:
    """A threshold, and below its yes a slanted question."""
    topology = Topology(np.array([2, 0, 2, 0, 0], dtype=np.int32))
    counts = np.array([[6.0, 4.0], [5.0, 0.0], [1.0, 4.0], [1.0, 0.0], [0.0, 4.0]])
    return Tree(
        topology,
        (
            Thresholds(np.array([0], dtype=np.int32), np.array([41.5])),
            Linears(np.array([[0.5, -3e-4, 0.0, 2.0]]), np.array([-1.25])),
        ),
        np.array([0, -1, 1, -1, -1], dtype=np.int8),
        np.zeros(5, dtype=np.int32),
        counts,
        counts / counts.sum(axis=1, keepdims=True),
        4,
    )


def regressor_tree() -> Tree:
    topology = Topology(np.array([2, 0, 0], dtype=np.int32))
    moments = np.array([[4.0, 10.0, 30.0], [2.5, 3.0, 5.0], [1.5, 7.0, 25.0]])
    values = np.array([[2.5], [1.5], [1e8 + 0.25]])
    questions = Thresholds(np.array([1], dtype=np.int32), np.array([-0.125]))
    return Tree.of_one_kind(topology, questions, moments, values, 4)


def test_a_classifier_reads_as_it_answers() -> None:
    assert tree_text(classifier_tree(), feature_names=NAMES, class_names=["no", "yes"]) == (
        "age > 41.5  [10 rows]\n"
        "|-- no: no 100%  [5 rows]\n"
        "`-- yes: 2 rooms + 0.5 age - 0.0003 income > 1.25  [5 rows]\n"
        "    |-- no: no 100%  [1 row]\n"
        "    `-- yes: yes 100%  [4 rows]\n"
    )


def test_a_regressor_shows_numbers_and_weighted_rows() -> None:
    assert tree_text(regressor_tree()) == "x1 > -0.125  [4 rows]\n|-- no: 1.5  [2.5 rows]\n`-- yes: 1e+08  [1.5 rows]\n"


def test_small_terms_are_counted() -> None:
    assert "2 rooms + 2 more > 1.25" in tree_text(classifier_tree(), feature_names=NAMES, max_terms=1)


def test_the_spread_of_columns_decides_which_terms_are_large() -> None:
    text = tree_text(classifier_tree(), feature_names=NAMES, max_terms=1, spreads=[10.0, 1e6, 1.0, 1.0])
    assert "yes: -0.0003 income" in text.replace("- 0", "-0")


def test_deep_branches_are_folded_with_a_note() -> None:
    assert tree_text(classifier_tree(), feature_names=NAMES, class_names=["no", "yes"], max_depth=1) == (
        "age > 41.5  [10 rows]\n|-- no: no 100%  [5 rows]\n`-- yes: yes 80%, no 20%  [5 rows; 1 question folded]\n"
    )
    assert tree_text(classifier_tree(), max_depth=0).endswith("[10 rows; 2 questions folded]\n")


def test_a_tree_of_one_leaf_is_one_line() -> None:
    stump = Tree.stump(np.array([3.0, 1.0]), np.array([0.75, 0.25]), 1)
    assert tree_text(stump, class_names=["a", "b"]) == "a 75%, b 25%  [4 rows]\n"


def test_only_the_largest_class_shares_are_listed() -> None:
    shares = np.array([0.1, 0.4, 0.2, 0.299, 0.001])
    text = tree_text(Tree.stump(1000 * shares, shares, 1), class_names="abcde")
    assert text == "b 40%, d 30%, c 20%, ...  [1,000 rows]\n"


def test_a_slanted_question_of_no_columns_is_said() -> None:
    topology = Topology(np.array([2, 0, 0], dtype=np.int32))
    tree = Tree.of_one_kind(topology, Linears(np.zeros((1, 2)), np.array([0.5])), np.ones((3, 2)), np.ones((3, 2)), 2)
    assert tree_text(tree).startswith("0 > -0.5  [2 rows]\n")


def test_a_name_cannot_steer_the_terminal() -> None:
    text = tree_text(regressor_tree(), feature_names=["a", "b\x1b[31m\n", "c", "d"])
    assert text.startswith("b?[31m? > -0.125")


def test_a_tree_as_deep_as_a_chain_is_written_without_recursion() -> None:
    depth = 3000
    topology = Topology(np.array([2, *[0, 2] * (depth - 1), 0, 0], dtype=np.int32))
    questions = Thresholds(np.zeros(depth, dtype=np.int32), np.arange(depth, dtype=np.float64))
    m = topology.n_nodes
    text = tree_text(Tree.of_one_kind(topology, questions, np.ones((m, 1)), np.ones((m, 1)), 1), class_names=["a"])
    assert text.count("\n") == m


def test_leaf_values_that_differ_are_told_apart() -> None:
    topology = Topology(np.array([2, 0, 0], dtype=np.int32))
    questions = Thresholds(np.array([0], dtype=np.int32), np.array([0.5]))
    values = np.array([[1e8], [1e8 - 1.25], [1e8 + 2.5]])
    text = tree_text(Tree.of_one_kind(topology, questions, np.ones((3, 3)), values, 1))
    assert "no: 99999998.75 " in text
    assert "yes: 100000002.5 " in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"feature_names": ["a"]}, "feature_names must have 4 names, one for each; got 1"),
        ({"class_names": ["a"]}, "class_names must have 2 names"),
        ({"spreads": [1.0]}, "spreads must have 4 numbers"),
        ({"max_terms": 0}, "max_terms must be an integer >= 1; got 0"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0; got -1"),
        ({"max_depth": 1.5}, "max_depth must be an integer >= 0; got 1.5"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tree_text(classifier_tree(), **options)  # type: ignore[arg-type]
