"""Questions: the hard, inert side of a split; one kind per class, registered here once."""

from __future__ import annotations

from softwood.question.base import AbstractQuestions, Layers, Linears, Thresholds
from softwood.question.callable import Callables
from softwood.question.kernel import Kernels
from softwood.question.network import Networks

QUESTIONS: dict[str, type[AbstractQuestions]] = {q.kind: q for q in (Thresholds, Linears, Networks, Kernels)}

__all__ = ["QUESTIONS", "AbstractQuestions", "Callables", "Kernels", "Layers", "Linears", "Networks", "Thresholds"]
