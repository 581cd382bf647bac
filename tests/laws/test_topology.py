"""Laws of tree shapes: a list of arities is a tree, or it is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference
import zoo
from softwood.topology import Topology

every_shape = pytest.mark.parametrize("topology", zoo.TOPOLOGIES.values(), ids=zoo.TOPOLOGIES)


@every_shape
def test_parents_come_before_children_and_know_each_other(topology: Topology) -> None:
    arity = topology.arity.tolist()
    assert topology.parent[0] == -1
    for node in range(topology.n_nodes):
        below = reference.children(arity, node)
        assert all(child > node and topology.parent[child] == node for child in below)
        assert topology.first_child[node] == (below[0] if below else 0)


@every_shape
def test_every_node_is_on_one_path_from_the_root(topology: Topology) -> None:
    arity = topology.arity.tolist()
    for node in range(topology.n_nodes):
        path = reference.path_to(arity, node)
        assert path[0] == 0
        assert len(path) - 1 == topology.level_of[node]


@every_shape
def test_levels_are_slices_that_cover_the_nodes_once(topology: Topology) -> None:
    nodes = [node for level in topology.levels for node in range(level.start, level.stop)]
    assert nodes == list(range(topology.n_nodes))
    assert topology.depth == len(topology.levels) - 1 == topology.level_of.max()
    for depth, level in enumerate(topology.levels):
        assert (topology.level_of[level] == depth).all()


@every_shape
def test_a_node_is_a_leaf_or_internal(topology: Topology) -> None:
    assert sorted([*topology.leaves, *topology.internal]) == list(range(topology.n_nodes))
    assert topology.leaves.tolist() == reference.leaves_of(topology.arity.tolist())
    assert topology.is_leaf[topology.leaves].all()
    assert not topology.is_leaf[topology.internal].any()


@every_shape
def test_two_children_need_one_score_and_more_need_one_each(topology: Topology) -> None:
    expected = [1 if count == 2 else count for count in topology.arity.tolist() if count]
    assert topology.n_scores.tolist() == expected


@every_shape
def test_leaf_order_is_left_to_right(topology: Topology) -> None:
    arity = topology.arity.tolist()

    def leaves_below(node: int) -> list[int]:
        if arity[node] == 0:
            return [node]
        return [leaf for child in reference.children(arity, node) for leaf in leaves_below(child)]

    assert [int(topology.leaf_order[leaf]) for leaf in leaves_below(0)] == list(range(topology.leaves.size))
    assert (topology.leaf_order[topology.internal] == -1).all()


@pytest.mark.parametrize(("depth", "arity"), [(0, 2), (1, 2), (4, 2), (2, 3), (1, 5)])
def test_a_complete_tree_has_all_its_leaves_at_its_depth(depth: int, arity: int) -> None:
    topology = Topology.complete(depth, arity)
    assert topology.leaves.size == arity**depth
    assert (topology.level_of[topology.leaves] == depth).all()
    assert (topology.arity[topology.internal] == arity).all()


@given(arity=st.lists(st.integers(-1, 4), max_size=12))
@example(arity=[])
@example(arity=[0])
@example(arity=[0, 0])
@example(arity=[2, 0])
@example(arity=[2, 0, 0, 0])
@example(arity=[2, 0, 0, 2, 0, 0])
@example(arity=[1, 0])
def test_a_list_of_arities_is_a_tree_or_refused(arity: list[int]) -> None:
    """Of random lists: exactly those are accepted that the reference can build level by level."""
    if reference.is_breadth_first_tree(arity):
        assert Topology(np.array(arity)).n_nodes == len(arity)
    else:
        with pytest.raises(ValueError, match="arity must"):
            Topology(np.array(arity, dtype=int))


@given(data=st.data())
def test_a_tree_with_one_entry_changed_is_refused(data: st.DataObject) -> None:
    """Near misses: the sum of the arities no longer fits the number of nodes."""
    arity = zoo.TOPOLOGIES[data.draw(st.sampled_from(sorted(zoo.TOPOLOGIES)))].arity.copy()
    where = data.draw(st.integers(0, arity.size - 1))
    wrong = data.draw(st.integers(-(2**31), 2**31 - 1).filter(lambda count: count != arity[where]))
    arity[where] = wrong
    with pytest.raises(ValueError, match="arity must"):
        Topology(arity)


@given(data=st.data())
def test_any_tree_grown_level_by_level_is_accepted(data: st.DataObject) -> None:
    arity, level = [], 1
    for _ in range(4):
        here = data.draw(st.lists(st.sampled_from([0, 2, 3]), min_size=level, max_size=level))
        arity += here
        level = sum(here)
    topology = Topology(np.array(arity + [0] * level))
    assert topology.arity.tolist() == arity + [0] * level
    assert topology.levels[-1].stop == topology.n_nodes


@pytest.mark.parametrize(
    "arity",
    [
        np.array([[2, 0, 0]]),
        np.array([2.5, 0, 0]),
        np.array([np.nan]),
        np.array([2 + 2**32, 0, 0]),
        np.array([2**62]),
        np.array([2**31 - 1] * 3),
    ],
    ids=["two axes", "a fraction", "not a number", "two, after wrapping round", "vast", "a sum beyond 32 bits"],
)
def test_numbers_that_are_not_counts_are_refused(arity: np.ndarray) -> None:
    with pytest.raises(ValueError, match="arity must"):
        Topology(arity)


def test_a_topology_cannot_be_changed_through_its_arrays_or_the_callers() -> None:
    arity = np.array([2, 0, 0], dtype=np.int32)
    topology = Topology(arity)
    arity[:] = 7  # the caller's own array stays the caller's
    assert topology.arity.tolist() == [2, 0, 0]
    for name in (
        "arity",
        "first_child",
        "parent",
        "level_of",
        "is_leaf",
        "internal",
        "leaves",
        "n_scores",
        "leaf_order",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(topology, name)[...] = 0
