"""What families of small networks share: every node has layers of its own, with an activation between them.

theta is one block per layer, each over all internal nodes: (nodes, units, inputs + 1), and last one row per score,
(scores, inputs + 1); a unit's weights come before its offset. Products over all nodes at once; no loop but over layers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from softwood._activation import ACTIVATIONS
from softwood._namespace import Array, array_namespace
from softwood.question import AbstractQuestions, Networks
from softwood.split.base import AbstractSplit, Asked, FloatArray, Units, scores_of
from softwood.split.layers import (
    block_bar,
    carried,
    cut,
    decaying,
    drawn,
    flat,
    inwards,
    of_nodes,
    of_scores,
    outputs,
    outwards,
    place,
    straight,
)
from softwood.topology import Topology

NOISE = 0.01  # of outputs that nothing is asked of yet


class AbstractDense(AbstractSplit):
    """score = W . a(... a(A x + c) ...) + b, the layers of each node its own."""

    @property
    @abstractmethod
    def hidden(self) -> tuple[int, ...]:
        """Units of each hidden layer."""

    @property
    @abstractmethod
    def activation(self) -> str:
        """One of ACTIVATIONS."""

    def n_parameters(self, topology: Topology, n_features: int) -> int:
        return sum(int(np.prod(shape)) for shape in self._shapes(topology, n_features))

    def scores(self, theta: Array, X: Array, topology: Topology) -> Array:
        blocks = cut(theta, self._shapes(topology, X.shape[1]))
        return outputs(of_scores(self._passed(blocks, X)[-1], topology), blocks[-1])

    def scores_vjp(self, theta: Array, X: Array, topology: Topology, Z_bar: Array) -> Array:
        xp = array_namespace(X)
        blocks = cut(theta, self._shapes(topology, X.shape[1]))
        passed = self._passed(blocks, X)
        seen = of_scores(passed[-1], topology)
        bars = [block_bar(xp.expand_dims(Z_bar.T, axis=-1), seen)[:, 0, :]]
        H_bar = of_nodes(xp.expand_dims(Z_bar.T, axis=-1) * xp.expand_dims(blocks[-1][:, :-1], axis=1), topology)
        for block, H, before in zip(blocks[-2::-1], passed[:0:-1], passed[-2::-1], strict=True):
            T_bar = H_bar * ACTIVATIONS[self.activation].slope(H)
            bars.insert(0, block_bar(T_bar, before))
            H_bar = T_bar @ block[:, :, :-1]
        return xp.concat([xp.reshape(bar, (-1,)) for bar in bars])

    def decays(self, topology: Topology, n_features: int) -> npt.NDArray[np.bool_]:
        return decaying(self._shapes(topology, n_features))

    def random(self, topology: Topology, n_features: int, rng: np.random.Generator) -> FloatArray:
        return flat(drawn(self._shapes(topology, n_features), rng))

    def questions(self, theta: FloatArray, topology: Topology, units: Units) -> AbstractQuestions:
        p = units.center.size
        blocks = cut(np.asarray(theta, dtype=np.float64), self._shapes(topology, p))
        networks = []
        for node in range(topology.internal.size):
            layers = [*(block[node] for block in blocks[:-1]), blocks[-1][scores_of(topology, np.array([node]))]]
            networks.append((self.activation, [outwards(layers[0], units), *layers[1:]]))
        return Networks.of_layers(networks)

    def soften(self, asked: Asked, units: Units, rng: np.random.Generator) -> FloatArray:
        blocks = drawn(self._shapes(asked.topology, units.center.size), rng)
        blocks[-1][:, :-1] *= NOISE
        blocks[-1][:, -1] = 0
        for node in np.flatnonzero(asked.table >= 0):
            layers = self._layers(asked.tables[asked.table[node]], int(asked.row[node]), units)
            for block, layer in zip(blocks[:-1], layers[:-1], strict=True):
                place(layer, block[node])
                block[node, : len(layer), layer.shape[1] - 1 : -1] = 0  # what is asked does not hear the noise
            for score, unit in zip(scores_of(asked.topology, np.array([node])), layers[-1], strict=True):
                place(unit[None], blocks[-1][score][None])
        return flat(blocks)

    def _layers(self, questions: AbstractQuestions, k: int, units: Units) -> Sequence[FloatArray]:
        """Layers for standardised columns that ask question k, or what is most like it."""
        network = questions.network(k)
        if network is not None and self._holds(network[0], [len(layer) for layer in network[1][:-1]]):
            return [inwards(network[1][0], units), *network[1][1:]]
        return carried(straight(questions, k, units), self.hidden, self.activation)

    def _holds(self, activation: str, sizes: Sequence[int]) -> bool:
        fits = len(sizes) == len(self.hidden) and all(a <= b for a, b in zip(sizes, self.hidden, strict=True))
        return fits and (activation == self.activation or not sizes)

    def _shapes(self, topology: Topology, n_features: int) -> list[tuple[int, ...]]:
        sizes = (n_features, *self.hidden)
        n_nodes = int(topology.internal.size)
        layers: list[tuple[int, ...]] = [(n_nodes, units, width + 1) for width, units in pairwise(sizes)]
        return [*layers, (int(topology.n_scores.sum()), sizes[-1] + 1)]

    def _passed(self, blocks: Sequence[Array], X: Array) -> list[Array]:
        """(nodes, n, units) after each hidden layer; before them (1, n, p), the rows themselves."""
        xp = array_namespace(X)
        passed = [xp.expand_dims(X, axis=0)]
        for block in blocks[:-1]:
            T = passed[-1] @ xp.matrix_transpose(block[:, :, :-1]) + xp.expand_dims(block[:, :, -1], axis=1)
            passed.append(ACTIVATIONS[self.activation].function(T))
        return passed
