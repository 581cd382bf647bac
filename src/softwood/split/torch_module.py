"""A torch module as a split family: its forward pass scores a question, autograd is the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softwood.split.custom import Custom


def torch_split(make: Callable[[int], Any]) -> Custom:
    """A family whose questions are scored by torch modules; trained by the same trainers as any other.

    Parameters
    ----------
    make : callable
        ``make(n_features) -> torch.nn.Module`` that maps (n, n_features) to (n,) or (n, 1) scores. The module must
        draw nothing and keep nothing between calls (no dropout, no batch normalisation).

    Returns
    -------
    split : Custom
        For ``TreeClassifier(split=...)``. Each question has parameters of its own.

    Notes
    -----
    Needs torch: ``pip install 'softwood[torch]'``.
    """
    module = _Module(make)
    return Custom(module.score, module.score_vjp, module.n_theta, module.start)


@dataclass(frozen=True)
class _Module:
    """The functions of ``Custom``, from a module made for each number of columns."""

    make: Callable[[int], Any]

    def score(self, theta: Any, X: Any) -> npt.NDArray[Any]:
        torch = _torch()
        with _one_thread(torch), torch.no_grad():
            scores = self._forward(torch.as_tensor(np.array(theta)), X)
        return np.asarray(scores.numpy())

    def score_vjp(self, theta: Any, X: Any, z_bar: Any) -> npt.NDArray[Any]:
        torch = _torch()
        variable = torch.as_tensor(np.array(theta)).requires_grad_(True)
        with _one_thread(torch):
            scores = self._forward(variable, X)
            cotangent = torch.as_tensor(np.array(z_bar)).to(scores.dtype)
            (theta_bar,) = torch.autograd.grad(scores, variable, cotangent)
        return np.asarray(theta_bar.numpy())

    def n_theta(self, n_features: int) -> int:
        return sum(parameter.numel() for parameter in _shape(self, n_features).parameters())

    def start(self, n_features: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """The module's own start, drawn from our generator."""
        parameters = self._made(n_features, int(rng.integers(2**31))).parameters()
        return np.concatenate([each.detach().numpy().ravel() for each in parameters]).astype(np.float64)

    def _made(self, n_features: int, seed: int) -> Any:
        torch = _torch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make(n_features)

    def _forward(self, theta: Any, X: Any) -> Any:
        """(n,) scores of one question."""
        torch = _torch()
        module, start, named = _shape(self, X.shape[1]), 0, {}
        for name, parameter in module.named_parameters():
            stop = start + parameter.numel()
            named[name] = theta[start:stop].reshape(parameter.shape)
            start = stop
        rows = torch.as_tensor(np.array(X)).to(theta.dtype)
        return torch.func.functional_call(module, named, (rows,)).reshape(-1)


@lru_cache(maxsize=16)
def _shape(module: _Module, n_features: int) -> Any:
    """A module whose parameters are always replaced: made once for each number of columns."""
    return module._made(n_features, 0)


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """The same bits wherever it runs, and no waiting for threads over a few hundred rows."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            "Split families of torch modules need the package torch, which is not installed. Install it with: "
            "pip install 'softwood[torch]'."
        ) from None
    return torch
