"""The flowing family, a neural network in the shape of a tree: columns are bent anew at each node a row passes.

    h_root = a(A_root x + c),  h_child = a(A_child h_parent + c_child),  score of node k = w_k . h_k + b_k

theta is three blocks: the root's layer, the layers of all other internal nodes, one row per score. The way back goes
over the levels once, from the lowest up: a node's cotangent is its own and the sum of its children's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from softwood._activation import ACTIVATIONS
from softwood._namespace import Array, array_namespace, as_indices
from softwood.question import AbstractQuestions, Layers, Networks
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units, scores_of
from softwood.split.checks import check_activation, check_count
from softwood.split.layers import (
    affine,
    block_bar,
    cut,
    decaying,
    drawn,
    flat,
    inwards,
    of_nodes,
    of_scores,
    outputs,
    outwards,
    straight,
)
from softwood.topology import Topology

NOISE = 0.01  # of outputs that nothing is asked of yet, and of what a node adds to what it hands on
GENTLE = 0.5  # length of the first directions: short ones stay where the activation is straight


@dataclass(frozen=True)
class Flowing(AbstractSplit):
    """Questions about what the nodes above have made of a row.

    Parameters
    ----------
    n_units : int, default=8
        Numbers that flow from a node to its children.
    activation : {"tanh", "relu", "sigmoid", "identity"}, default="tanh"
        What bends them at each node.
    n_children : int, default=2
        Children of each node.
    """

    n_units: int = 8
    activation: str = "tanh"
    n_children: int = 2
    name: ClassVar[str] = "flowing"
    spans_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("Flowing", "n_units", self.n_units)
        check_activation("Flowing", self.activation)
        check_count("Flowing", "n_children", self.n_children, 2)

    @property
    def arity(self) -> int:
        return self.n_children

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return sum(int(np.prod(shape)) for shape in self._shapes(topology, n_features))

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        blocks = cut(theta, self._shapes(topology, X.shape[1]))
        H = array_namespace(X).concat(self._flow(blocks, X, topology), axis=0)
        return outputs(of_scores(H, topology), blocks[-1])

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        xp = array_namespace(X)
        blocks = cut(theta, self._shapes(topology, X.shape[1]))
        flow = self._flow(blocks, X, topology)
        column = xp.expand_dims(Z_bar.T, axis=-1)
        H_bar = of_nodes(column * xp.expand_dims(blocks[2][:, :-1], axis=1), topology)
        bars = [block_bar(column, of_scores(xp.concat(flow, axis=0), topology))[:, 0, :]]
        handed: Array | None = None
        for level in reversed(_levels(topology)):
            bar = H_bar[level.start : level.stop, ...]
            T_bar = (bar if handed is None else bar + handed) * ACTIVATIONS[self.activation].slope(flow[level.depth])
            bars.insert(0, block_bar(T_bar, level.above(flow, X)))
            if level.depth:
                handed = level.to_parents(T_bar @ blocks[1][level.start - 1 : level.stop - 1, :, :-1])
        return xp.concat([xp.reshape(bar, (-1,)) for bar in bars])

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        return decaying(self._shapes(topology, n_features))

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        return flat(drawn(self._shapes(topology, n_features), rng))

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        blocks = cut(np.asarray(theta, dtype=np.float64), self._shapes(topology, units.center.size))
        networks: list[Layers] = []
        hidden: list[list[FloatArray]] = []
        for k, above in enumerate(_parents(topology)):
            hidden.append([*hidden[above], blocks[1][k - 1]] if k else [outwards(blocks[0][0], units)])
            networks.append((self.activation, [*hidden[k], blocks[2][scores_of(topology, np.array([k]))]]))
        return Networks.of_layers(networks)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        nodes = np.flatnonzero(asked.table >= 0)
        slants = [straight(asked.tables[asked.table[k]], int(asked.row[k]), units) for k in nodes]
        blocks = self._carrying(slants, asked.topology, units.center.size, rng)
        networks = [asked.tables[asked.table[k]].network(int(asked.row[k])) for k in nodes]
        depth = asked.topology.level_of[asked.topology.internal]
        own = [self._made(network, int(depth[k])) for k, network in zip(nodes, networks, strict=True)]
        for k, slant, layers in zip(nodes, slants, own, strict=True):
            scores = scores_of(asked.topology, np.array([k]))
            if not all(own):
                blocks[2][scores] = self._read_off(slant, blocks[0][0])
                continue
            blocks[2][scores] = layers[-1]
            if k:
                blocks[1][k - 1] = layers[-2]
            else:
                blocks[0][0] = inwards(layers[0], units)
        return flat(blocks)

    def _made(self, network: Layers | None, depth: int) -> Sequence[FloatArray]:
        """The layers of a network that this family made for a node of that depth; none of any other."""
        if network is None or len(network[1]) != depth + 2 or network[0] != self.activation:
            return []
        return network[1] if all(len(layer) == self.n_units for layer in network[1][:-1]) else []

    def _carrying(
        self, slants: Sequence[FloatArray], topology: Topology, n_features: int, rng: np.random.Generator
    ) -> list[FloatArray]:
        """Blocks that hand the chief directions of some slants down the tree, bending them as little as can be."""
        a, shapes = ACTIVATIONS[self.activation], self._shapes(topology, n_features)
        blocks = [NOISE * np.asarray(rng.normal(size=shape)) for shape in shapes]
        chief = np.linalg.svd(np.concatenate([np.zeros((0, n_features)), *(slant[:, :-1] for slant in slants)]))[2]
        count = min(self.n_units, n_features)
        directions = np.asarray(rng.normal(size=(self.n_units, n_features))) / np.sqrt(n_features)
        directions[:count] = chief[:count]
        blocks[0][...] = affine(GENTLE * directions, a.anchor)
        blocks[1] += affine(np.eye(self.n_units) / a.gain, a.anchor - a.level / a.gain)
        blocks[2][:, -1] = 0
        return blocks

    def _read_off(self, slant: FloatArray, first: FloatArray) -> FloatArray:
        """(outputs, units + 1) the slant as a weighted sum of what the first layer carries down."""
        a = ACTIVATIONS[self.activation]
        weights = slant[:, :-1] @ np.linalg.pinv(first[:, :-1]) / a.gain
        return np.concatenate([weights, (slant[:, -1] - a.level * weights.sum(axis=1))[:, None]], axis=1)

    def _shapes(self, topology: Topology, n_features: int) -> list[tuple[int, ...]]:
        n_nodes, h = int(topology.internal.size), self.n_units
        first, rest = min(n_nodes, 1), max(n_nodes - 1, 0)
        return [(first, h, n_features + 1), (rest, h, h + 1), (int(topology.n_scores.sum()), h + 1)]

    def _flow(self, blocks: Sequence[Array], X: Array, topology: Topology) -> list[Array]:
        """(nodes, n, units) of each level; of a tree without questions, one of no nodes."""
        xp = array_namespace(X)
        flow: list[Array] = []
        for level in _levels(topology):
            block = blocks[1][level.start - 1 : level.stop - 1, ...] if level.depth else blocks[0]
            T = level.above(flow, X) @ xp.matrix_transpose(block[:, :, :-1]) + xp.expand_dims(block[:, :, -1], axis=1)
            flow.append(ACTIVATIONS[self.activation].function(T))
        return flow or [xp.zeros((0, X.shape[0], self.n_units), dtype=X.dtype, device=X.device)]


@dataclass(frozen=True)
class _Level:
    """The questions of one depth, numbered as ``topology.internal`` lists them."""

    depth: int
    start: int
    stop: int
    parent: npt.NDArray[np.int64]  # place of each one's parent among those of the level above
    n_above: int

    def above(self, flow: Sequence[Array], X: Array) -> Array:
        """(nodes or 1, n, inputs) what flows into each node: of the root, the rows."""
        xp = array_namespace(X)
        if not self.depth:
            return xp.expand_dims(X, axis=0)
        return xp.take(flow[self.depth - 1], as_indices(self.parent, X), axis=0)

    def to_parents(self, bar: Array) -> Array:
        """(nodes above, n, units) sums over the children of each node above."""
        xp = array_namespace(bar)
        belongs = np.arange(self.n_above)[:, None] == self.parent
        return xp.tensordot(xp.asarray(belongs, dtype=bar.dtype, device=bar.device), bar, axes=1)


def _levels(topology: Topology) -> list[_Level]:
    parents, depth = _parents(topology), topology.level_of[topology.internal]
    levels: list[_Level] = []
    for at in range(topology.depth):
        start, stop = (int(place) for place in np.searchsorted(depth, [at, at + 1]))
        above = levels[-1] if levels else _Level(0, 0, 1, parents[:0], 0)
        levels.append(_Level(at, start, stop, parents[start:stop] - above.start, above.stop - above.start))
    return levels


def _parents(topology: Topology) -> npt.NDArray[np.int64]:
    """(internal nodes,) the place of each one's parent among the internal nodes; 0 for the root."""
    return np.searchsorted(topology.internal, np.maximum(topology.parent[topology.internal], 0)).astype(np.int64)
