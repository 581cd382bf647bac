"""Layers of many networks at once, and the ways in and out of them: what families of networks compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from softwood._activation import ACTIVATIONS
from softwood._namespace import Array, array_namespace, as_indices
from softwood.question import AbstractQuestions
from softwood.split.base import FloatArray, Units
from softwood.topology import Topology

Number = TypeVar("Number", bound=np.generic)
STEEPNESS = 1.0  # weight of a standardised column that starts as a threshold question


def outputs(
    H: Array,  # (scores or 1, n, units)
    block: Array,  # (scores, units + 1)
) -> Array:  # (n, scores)
    xp = array_namespace(block)
    return (H @ xp.expand_dims(block[:, :-1], axis=-1))[:, :, 0].T + block[:, -1]


def block_bar(
    T_bar: Array,  # (nodes, n, units)
    H: Array,  # (nodes or 1, n, inputs)
) -> Array:  # (nodes, units, inputs + 1)
    """Cotangent of a layer's weights and offsets."""
    xp = array_namespace(H)
    return xp.concat([xp.matrix_transpose(T_bar) @ H, xp.expand_dims(xp.sum(T_bar, axis=1), axis=-1)], axis=-1)


def of_scores(H: Array, topology: Topology) -> Array:
    """What each score sees of (nodes, n, units): its node's units."""
    if H.shape[0] == 1 or (topology.n_scores == 1).all():
        return H
    owner = np.repeat(np.arange(topology.internal.size), topology.n_scores)
    return array_namespace(H).take(H, as_indices(owner, H), axis=0)


def of_nodes(H_bar: Array, topology: Topology) -> Array:
    """The way back of ``of_scores``: sums over the scores of each node."""
    if (topology.n_scores == 1).all():
        return H_bar
    xp = array_namespace(H_bar)
    owner = np.repeat(np.arange(topology.internal.size), topology.n_scores)
    belongs = owner == np.arange(topology.internal.size)[:, None]
    return xp.tensordot(xp.asarray(belongs, dtype=H_bar.dtype, device=H_bar.device), H_bar, axes=1)


def carried(slant: FloatArray, hidden: Sequence[int], activation: str) -> list[FloatArray]:
    """Layers that carry linear scores (outputs, p + 1) through the straightest part of the activation."""
    if not hidden:
        return [slant]
    a = ACTIVATIONS[activation]
    n_carried = min(len(slant), *hidden)
    first = slant[:n_carried].copy()
    first[:, -1] += a.anchor
    between = affine(np.eye(n_carried) / a.gain, a.anchor - a.level / a.gain)
    last = affine(np.eye(len(slant), n_carried) / a.gain, -a.level / a.gain)
    last[n_carried:] = 0
    return [first, *[between] * (len(hidden) - 1), last]


def affine(weights: FloatArray, offset: float) -> FloatArray:
    return np.concatenate([weights, np.full((len(weights), 1), offset)], axis=1)


def straight(questions: AbstractQuestions, k: int, units: Units) -> FloatArray:
    """(outputs, p + 1) the linear scores on standardised columns that are most like question k."""
    weights, offsets = questions.slants(np.array([k]), units.center.size)
    slant = inwards(np.concatenate([weights, offsets[:, None]], axis=1), units)
    return slant * (STEEPNESS / max(float(np.abs(slant[:, :-1]).max()), 1e-300) if questions.is_hard else 1.0)


def place(layer: FloatArray, block: FloatArray) -> None:
    """Write a layer into the corner of a block that is at least as large."""
    units, width = len(layer), layer.shape[1] - 1
    block[:units, :width] = layer[:, :-1]
    block[:units, -1] = layer[:, -1]


def outwards(layer: FloatArray, units: Units) -> FloatArray:
    """A layer on standardised columns as one on the user's."""
    weights = layer[:, :-1] * units.per_scale
    return np.concatenate([weights, (layer[:, -1] - weights @ units.center)[:, None]], axis=1)


def inwards(layer: FloatArray, units: Units) -> FloatArray:
    """A layer on the user's columns as one on standardised ones."""
    offset = layer[:, -1] + layer[:, :-1] @ units.center
    return np.concatenate([layer[:, :-1] * units.scale, offset[:, None]], axis=1)


def cut(theta: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """theta as blocks of these shapes, one after another."""
    xp, blocks, start = array_namespace(theta), [], 0
    for shape in shapes:
        stop = start + int(np.prod(shape))
        blocks.append(xp.reshape(theta[start:stop], shape))
        start = stop
    return blocks


def decaying(shapes: Sequence[tuple[int, ...]]) -> npt.NDArray[np.bool_]:
    """(q,) all of the blocks but the last column of each, its offsets."""
    masks = [np.ones(shape, dtype=bool) for shape in shapes]
    for mask in masks:
        mask[..., -1] = False
    return flat(masks)


def drawn(shapes: Sequence[tuple[int, ...]], rng: np.random.Generator) -> list[FloatArray]:
    """Blocks of random directions of length 2 with offsets."""
    blocks = [np.asarray(rng.normal(size=shape)) for shape in shapes]
    for block in blocks:
        block[..., :-1] *= 2.0 / np.linalg.norm(block[..., :-1], axis=-1, keepdims=True)
    return blocks


def flat(blocks: Sequence[npt.NDArray[Number]]) -> npt.NDArray[Number]:
    return np.concatenate([block.ravel() for block in blocks])
