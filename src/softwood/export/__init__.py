"""A tree in other languages; each file reads a Tree and nothing else."""

from __future__ import annotations

from softwood.export.text import tree_text

__all__ = ["tree_text"]
