"""Questions asked by small networks: layers of weights with an activation between them, one network per question.

One output is the score of child 1 (sigmoid), B > 2 outputs are the scores of B children (softmax; the largest is
taken). A network without hidden layers is linear: with two children that is ``Linears``, with more it is multiway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from softwood._activation import ACTIVATIONS
from softwood._frozen import frozen
from softwood.question.base import AbstractQuestions, FloatArray, Layers

NAMES = tuple(ACTIVATIONS)  # a model file holds places in this tuple: append only
MOST_WRITTEN = 12  # weights of a question that is written out term by term


@dataclass(frozen=True, eq=False)
class Networks(AbstractQuestions):
    """outputs > 0, or the largest of them? The scale of the last layer is the sharpness."""

    sizes: tuple[tuple[int, ...], ...]  # of each question: columns, hidden layers, outputs
    activation: npt.NDArray[np.int32]  # (k,) place in NAMES
    parameters: tuple[FloatArray, ...]  # layer by layer; of each unit its weights, then its offset
    kind: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", frozen(self.activation, np.int32))
        object.__setattr__(self, "parameters", tuple(frozen(each, np.float64) for each in self.parameters))

    @classmethod
    def of_layers(cls, networks: Sequence[Layers]) -> Networks:
        """A table from the layers of each question: (outputs, inputs + 1), the offsets last."""
        sizes = [(layers[0].shape[1] - 1, *(len(layer) for layer in layers)) for _, layers in networks]
        parameters = [np.concatenate([layer.ravel() for layer in layers]) for _, layers in networks]
        codes = np.array([NAMES.index(name) for name, _ in networks], dtype=np.int32)
        return cls(tuple(sizes), codes, tuple(parameters))

    @property
    def n_questions(self) -> int:
        return len(self.sizes)

    def n_children(self, k: int) -> int:
        return max(self.sizes[k][-1], 2)

    def network(self, k: int) -> Layers:
        layers, start = [], 0
        for width, units in pairwise(self.sizes[k]):
            stop = start + units * (width + 1)
            layers.append(self.parameters[k][start:stop].reshape(units, width + 1))
            start = stop
        return NAMES[self.activation[k]], layers

    def answer(self, X: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
        scores = self._scores(X, k)
        best = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(best, dtype=np.int32)

    def probabilities(self, X: npt.NDArray[Any], rows: npt.NDArray[Any]) -> FloatArray:
        return np.stack([_shares(self._scores(X, int(k))) for k in rows], axis=1)

    def features(self, k: int) -> npt.NDArray[np.int32]:
        return np.flatnonzero(self._pull(k)).astype(np.int32)

    def slants(self, rows: npt.NDArray[Any], n_features: int) -> tuple[FloatArray, FloatArray]:
        tables = [_straightened(self.network(int(k))) for k in rows]
        table = np.concatenate([np.zeros((0, n_features + 1)), *tables])
        return table[:, :-1], table[:, -1]

    def text(self, k: int, names: Sequence[str]) -> str:
        size, used = self.sizes[k], self.features(k)
        written = len(size) - 2 <= 1 and used.size * (size[1] if len(size) == 3 else size[-1]) <= MOST_WRITTEN
        outputs = _sentences(self.network(k), used, names) if written else self._summary(k, used, names)
        return f"{outputs[0]} > 0" if size[-1] == 1 else f"largest of {'; '.join(outputs)}"

    def importances(self, gain: FloatArray, spread: FloatArray) -> FloatArray:
        total = np.zeros(spread.size)
        for k, worth in enumerate(gain):
            pull = self._pull(k) * spread
            total += worth * pull / max(float(pull.sum()), 1e-300)
        return total

    def take(self, rows: npt.NDArray[Any]) -> Networks:
        return Networks(
            tuple(self.sizes[k] for k in rows), self.activation[rows], tuple(self.parameters[k] for k in rows)
        )

    @classmethod
    def joined(cls, parts: Sequence[Networks]) -> Networks:
        return cls(
            tuple(size for t in parts for size in t.sizes),
            np.concatenate([t.activation for t in parts]),
            tuple(each for t in parts for each in t.parameters),
        )

    def record(self) -> dict[str, Any]:
        return {
            "sizes": [list(size) for size in self.sizes],
            "activation": self.activation.tolist(),
            "parameters": [each.tolist() for each in self.parameters],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any], n_features: int) -> Networks:
        sizes, codes = record["sizes"], record["activation"]
        parameters = [np.array(each, dtype=np.float64) for each in record["parameters"]]
        if not len(sizes) == len(codes) == len(parameters):
            raise ValueError(
                "network questions need one list of sizes, one activation and one list of parameters each."
            )
        for size, code, given in zip(sizes, codes, parameters, strict=True):
            _check(size, code, given, n_features)
        return cls(tuple(map(tuple, sizes)), np.array(codes, dtype=np.int32), tuple(parameters))

    def _scores(self, X: npt.NDArray[Any], k: int) -> FloatArray:
        """(n, outputs)"""
        name, layers = self.network(k)
        H: FloatArray = np.asarray(X, dtype=np.float64)
        for layer in layers[:-1]:
            H = ACTIVATIONS[name].function(H @ layer[:, :-1].T + layer[:, -1])
        return H @ layers[-1][:, :-1].T + layers[-1][:, -1]

    def _pull(self, k: int) -> FloatArray:
        """(p,) how strongly each column may move the outputs: products of absolute weights along all ways."""
        pull: FloatArray = np.ones(self.sizes[k][-1])
        for layer in reversed(self.network(k)[1]):
            pull = pull @ np.abs(layer[:, :-1])
        return pull

    def _summary(self, k: int, used: npt.NDArray[np.int32], names: Sequence[str]) -> list[str]:
        shape = "-".join(map(str, self.sizes[k]))
        columns = ", ".join(names[j] for j in used[:4]) + (f" and {used.size - 4} more" if used.size > 4 else "")
        return [f"{NAMES[self.activation[k]]} network {shape} of {columns or 'nothing'}"]


def _shares(scores: FloatArray) -> FloatArray:
    """(n, children) probabilities of the children from scores."""
    if scores.shape[1] == 1:
        half = 0.5 * np.tanh(0.5 * scores)
        return np.concatenate([0.5 - half, 0.5 + half], axis=1)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _straightened(network: Layers) -> FloatArray:
    """(outputs, p + 1) the network with straight lines for activations."""
    name, layers = network
    a, whole = ACTIVATIONS[name], layers[0]
    for layer in layers[1:]:
        ahead = a.gain * whole
        ahead[:, -1] += a.level - a.gain * a.anchor
        whole = layer[:, :-1] @ ahead
        whole[:, -1] += layer[:, -1]
    return whole


def _sentences(network: Layers, used: npt.NDArray[np.int32], names: Sequence[str]) -> list[str]:
    """Each output written out; at most one hidden layer."""
    name, layers = network
    terms, columns = [str(names[j]) for j in used], used.tolist()
    for layer in layers[:-1]:
        terms = [f"{name}({_sum(unit[[*columns, -1]], terms)})" for unit in layer]
        columns = list(range(len(terms)))
    return [_sum(unit[[*columns, -1]], terms) for unit in layers[-1]]


def _sum(weights: FloatArray, terms: Sequence[str]) -> str:
    return " ".join([*(f"{w:+.4g} {term}" for w, term in zip(weights[:-1], terms, strict=True)), f"{weights[-1]:+.4g}"])


def _check(size: Any, code: Any, parameters: FloatArray, n_features: int) -> None:
    """Refuse what is not a network on n_features columns."""
    if len(size) < 2 or any(type(units) is not int or not 0 < units < 2**31 for units in size):
        raise ValueError("network questions need at least two sizes each, integers above 0.")
    if size[0] != n_features or size[-1] == 2:
        raise ValueError(f"a network question must have {n_features} columns and 1 output or at least 3.")
    if type(code) is not int or not 0 <= code < len(NAMES):
        raise ValueError(f"a network question's activation must be from 0 to {len(NAMES) - 1}.")
    if parameters.shape != (sum(units * (width + 1) for width, units in pairwise(size)),):
        raise ValueError("a network question's sizes and its number of parameters disagree.")
    if not np.isfinite(parameters).all():
        raise ValueError("network questions need finite parameters.")
