"""Every example runs, draws its picture and shows what it says."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

plt = pytest.importorskip("matplotlib.pyplot")
FOLDER = Path(__file__).parents[2] / "examples"
PICTURES = sorted(file.stem for file in FOLDER.glob("*.py") if "from plane import" in file.read_text("utf-8"))
FACTS = {
    "blobs": lambda found: found["accuracy"] > 0.9 and found["at last"] < 0.5 * found["expected impurity at first"],
    "diamond": lambda found: found["global"] >= 0.985 and found["CART"] < 0.85,
    "growing": lambda found: (
        min(found["fixed shape"], found["grown and pruned"]) > 0.94
        and found["grown and pruned, leaves"] < found["fixed shape, leaves"]
    ),
    "moons": lambda found: found["global"] > 0.96 > 0.92 > max(found["cart"], found["greedy"]),
    "pretransform": lambda found: (
        min(found["4 tanh rows"], found["6 tanh rows"]) >= 0.965 > 0.93 > found["lines"]
        and found["4 rows, one question after another"] > 0.95
    ),
    "slanted": lambda found: found["accuracy"] > 0.98 and found["leaves"] == 4,
}


@pytest.fixture(autouse=True)
def _examples_can_import_each_other(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    plt.close("all")
    for name in ["plane", *PICTURES]:
        sys.modules.pop(name, None)


def run(name: str, out: Path) -> dict[str, Any]:
    return dict(importlib.import_module(name).example(out))


def test_every_picture_has_a_fact() -> None:
    assert set(PICTURES) == set(FACTS)


@pytest.mark.parametrize("name", PICTURES)
def test_an_example_draws_its_picture_and_shows_what_it_says(name: str, tmp_path: Path) -> None:
    found = run(name, tmp_path)
    assert FACTS[name](found), found
    picture = plt.imread(tmp_path / f"{name}.png")
    assert min(picture.shape[:2]) >= 300 and picture.std() > 0.05  # not an empty page
