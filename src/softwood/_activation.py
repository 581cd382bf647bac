"""Activations: the functions between the layers of a network, their slopes, and where they are like a straight line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softwood._namespace import Array, array_namespace


@dataclass(frozen=True)
class Activation:
    """A function of each number; near ``anchor`` it is ``level + gain * (t - anchor)``."""

    function: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # from the function's value, not from its argument
    anchor: float = 0.0
    level: float = 0.0
    gain: float = 1.0


def _tanh(t: Array) -> Array:
    return array_namespace(t).tanh(t)


def _sigmoid(t: Array) -> Array:
    return 0.5 + 0.5 * _tanh(0.5 * t)


def _relu(t: Array) -> Array:
    xp = array_namespace(t)
    return xp.where(t > 0, t, xp.zeros_like(t))


def _step(a: Array) -> Array:
    xp = array_namespace(a)
    return xp.where(a > 0, xp.ones_like(a), xp.zeros_like(a))


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(_tanh, lambda a: 1 - a * a),
    "relu": Activation(_relu, _step, anchor=1.0, level=1.0),
    "sigmoid": Activation(_sigmoid, lambda a: a * (1 - a), level=0.5, gain=0.25),
    "identity": Activation(lambda t: t, lambda a: array_namespace(a).ones_like(a)),
}
