"""Who may import whom: design and ARCHITECTURE.md say it, this page holds it.

Every module belongs to a room, its first name under the package. A room may import those to the right of it on a line
of PLAN and whatever those may import, and nothing else: not its siblings, not a room PLAN does not know. Modules with
a leading underscore are everybody's, and import only each other. A new module in a room needs nothing here; a new room
needs a place in PLAN.
"""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PLAN = """
__main__ > cli > estimators > ensemble > train > objective > impurity split > topology
cli > persist > estimators storage record
cli > report plot export storage > explain layout > tree > question lines topology
storage estimators > record
measures checks > impurity targets
train > source > bins split targets tree
estimators > answers > tree
split > question
objective > targets tree
ensemble > loss
estimators > table loss report plot export storage
"""
OUTSIDE = {  # who else's packages only some rooms may import
    "sklearn": {"estimators", "table", "cli"},  # cli: the demonstration's data
    "matplotlib": {"plot"},
    "torch": {"split"},  # a user's own module
    "array_api_compat": {"_namespace"},
}
SOURCE = Path(__file__).parents[1] / "src" / "softwood"


def plan() -> dict[str, set[str]]:
    """Room -> every room it may import, through others too."""
    below: dict[str, set[str]] = {}
    for line in PLAN.strip().splitlines():
        steps = [step.split() for step in line.split(">")]
        for upper, lower in zip(steps, [*steps[1:], []], strict=True):
            for room in upper:
                below.setdefault(room, set()).update(lower)
    for room in [*TopologicalSorter(below).static_order()]:  # from the bottom up
        below[room] = below[room].union(*(below[lower] for lower in below[room]))
    return below


def modules() -> dict[str, str]:
    """Dotted name under the package -> its text; the package itself is the empty name."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text(encoding="utf-8")
    return found


def imports(name: str, texts: dict[str, str]) -> set[str]:
    """Full names of all a module imports, wherever in it: inside functions and under TYPE_CHECKING as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(texts[name])):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"softwood.{name} imports relative to itself; write the full name"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def ours(name: str, texts: dict[str, str]) -> set[str]:
    """The modules of the package that a module imports; names in a module are reduced to it."""
    found = set()
    for full in imports(name, texts):
        package, _, target = full.partition(".")
        if package == "softwood":
            while target and target not in texts and target != "_core":
                target = target.rpartition(".")[0]
            found.add(target)
    return found


def violations(texts: dict[str, str]) -> list[str]:
    """One sentence for each import that PLAN does not allow."""
    allowed, wrong = plan(), []
    for name in texts:
        room = name.partition(".")[0]
        if room and not room.startswith("_") and room not in allowed:
            wrong.append(f"room {room} has no place in PLAN")
        for target in ours(name, texts):
            other = target.partition(".")[0]
            everybodys = other.startswith("_") and other != "__main__"
            if not (other == room or everybodys or not room or other in allowed.get(room, set())):
                wrong.append(f"{room} imports {other or 'the whole package'} ({name})")
        for full in imports(name, texts):
            package = full.partition(".")[0]
            if room not in OUTSIDE.get(package, {room}):
                wrong.append(f"{room} imports {package} ({name})")
            if package == "sklearn" and any(part.startswith("_") for part in full.split(".")):
                wrong.append(f"{room} imports the private name {full} ({name})")
    return wrong


def test_imports_go_in_the_direction_of_the_plan() -> None:
    assert violations(modules()) == []


def test_there_are_no_cycles() -> None:
    texts = modules()
    TopologicalSorter({name: ours(name, texts) - {name} for name in texts}).prepare()  # raises CycleError


def test_the_plan_says_what_the_design_says() -> None:
    below = plan()
    assert not below["impurity"] & {"split", "tree", "source", "targets", "table"}
    assert not below["split"] & {"impurity", "targets", "tree", "source", "table"}
    assert not below["tree"] & {"impurity", "split", "targets", "source", "objective", "train"}
    assert not below["targets"] & {"impurity", "split", "tree", "source"}
    assert not below["train"] & {"loss", "table", "ensemble", "estimators"}
    for reader in ("plot", "export", "storage", "report", "explain", "layout"):
        assert below[reader] <= {"explain", "layout", "tree", "question", "lines", "topology", "record"}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("impurity", "from softwood.tree import Tree", "impurity imports tree (impurity)"),
        ("split.new", "import softwood.targets", "split imports targets (split.new)"),
        ("tree", "def late():\n    from softwood import impurity", "tree imports impurity (tree)"),
        ("train.new", "from softwood.loss import Loss", "train imports loss (train.new)"),
        ("split.new", "from softwood import Tree", "split imports the whole package (split.new)"),
        ("_new", "from softwood.tree import Tree", "_new imports tree (_new)"),
        ("invented", "", "room invented has no place in PLAN"),
        ("train.new", "from sklearn.tree import DecisionTreeClassifier", "train imports sklearn (train.new)"),
        ("tree", "import matplotlib.pyplot as plt", "tree imports matplotlib (tree)"),
        ("objective", "import torch", "objective imports torch (objective)"),
        ("estimators", "from sklearn.tree._tree import Tree", "imports the private name sklearn.tree._tree.Tree"),
    ],
)
def test_a_forbidden_import_is_found(name: str, text: str, expected: str) -> None:
    found = violations({"loss": "", **modules(), name: text})
    assert any(expected in sentence for sentence in found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("estimators", "from sklearn.base import BaseEstimator\nfrom softwood.train import recipe"),
        ("train.new", "import numpy\nfrom softwood.objective import expected_impurity\nfrom softwood import _core"),
        ("split.new", "from softwood.split.base import AbstractSplit\nfrom softwood.question import Linears"),
        ("", "from softwood.tree import Tree"),
    ],
)
def test_an_allowed_import_is_allowed(name: str, text: str) -> None:
    assert set(violations({**modules(), name: text})) <= set(violations(modules()))


def test_modules_are_found() -> None:
    """Were the folder empty, everything above would hold."""
    assert {"", "topology", "impurity", "split", "split.linear", "train.base"} <= set(modules())
