"""The examples of training a model of one's own run, and learn."""

from __future__ import annotations

import doctest
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def learned(name: str, capsys: pytest.CaptureFixture[str]) -> list[float]:
    """Gini of all rows, expected at the start and at the end, of the hard parts, as printed."""
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return [float(number) for number in re.findall(r"\d\.\d+", capsys.readouterr().out)]


def test_a_logistic_assignment_learns_two_blobs_in_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    whole, start, end, hard = learned("expected_impurity_numpy.py", capsys)
    assert whole == 0.5 and start > 0.45 and end < 0.1 and hard < 0.1


def test_a_network_learns_a_ring_by_autograd(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    whole, start, end, hard = learned("expected_impurity_torch.py", capsys)
    assert whole == 0.5 and start > 0.4 and end < 0.1 and hard < 0.1


def test_the_page_about_impurity_says_what_the_code_does() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "impurity.md"), module_relative=False)
    assert found.attempted > 5 and not found.failed
