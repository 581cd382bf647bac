"""The model file: what goes in comes out bit-equal, and whatever else is in a file is one ModelFileError."""

from __future__ import annotations

import copy
import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softwood import ModelFileError, TreeClassifier, TreeRegressor, load, save
from softwood.question import Linears, Thresholds
from softwood.storage import FORMAT, MAX_BYTES, VERSION, read_json, tree_from_record, tree_record, write_json
from softwood.topology import Topology
from softwood.tree import Tree

P = 3


def a_tree() -> Tree:
    """Five questions of two kinds on three columns, with numbers that decimals cannot hold."""
    rng = np.random.default_rng(0)
    topology = Topology(np.array([2, 2, 2, 0, 0, 2, 0, 0, 2, 0, 0], dtype=np.int32))
    thresholds = Thresholds(np.array([2, 0], dtype=np.int32), np.array([0.1 + 0.2, -5e-324]))
    linears = Linears(rng.normal(size=(3, P)) * 1e-7, np.array([1 / 3, 1e300, -0.0]))
    return Tree(
        topology,
        (thresholds, linears),
        np.array([0, 1, 1, -1, -1, 0, -1, -1, 1, -1, -1], dtype=np.int8),
        np.array([0, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0], dtype=np.int32),
        rng.random((11, 2)),
        rng.random((11, 2)),
        P,
    )


def through_text(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(record))


def wrong(*path: Any, value: Any) -> dict[str, Any]:
    """The record of a tree with one thing in it replaced."""
    record = tree_record(a_tree())
    place: Any = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return record


def networks(**changed: Any) -> dict[str, Any]:
    """The record of three network questions of one layer, with one entry replaced."""
    outputs = changed.get("sizes", [[P, 1]])[0]
    width = outputs[-1] if isinstance(outputs, list) and type(outputs[-1]) is int and outputs[-1] < 9 else 1
    record = {"sizes": [[P, 1]] * 3, "activation": [0] * 3, "parameters": [[0.5] * (P + 1) * width] * 3}
    return {"kind": "network", **record, **changed}


def kernels(**changed: Any) -> dict[str, Any]:
    """The record of three kernel questions about two landmarks, with one entry replaced."""
    points = [[0.5] * P] * 2
    record = {"centers": points, "slopes": points, "degrees": [0, 2], "weights": [[1.0, 2.0]] * 3, "bias": [0.0] * 3}
    return {"kind": "kernel", **record, **changed}


# A tree


def test_a_tree_comes_back_bit_equal() -> None:
    tree = a_tree()
    back = tree_from_record(through_text(tree_record(tree)))
    for name in ("table", "row", "statistics", "values"):
        assert getattr(back, name).tobytes() == getattr(tree, name).tobytes(), name
        assert getattr(back, name).dtype == getattr(tree, name).dtype, name
    assert back.topology.arity.tobytes() == tree.topology.arity.tobytes()
    for made, given in zip(back.tables, tree.tables, strict=True):
        assert type(made) is type(given)
        for name in made.record():
            assert getattr(made, name).tobytes() == getattr(given, name).tobytes(), name


def test_a_stump_comes_back() -> None:
    stump = Tree.stump(np.array([3.0, 1.0]), np.array([0.75, 0.25]), P)
    back = tree_from_record(through_text(tree_record(stump)))
    assert (back.n_nodes, back.n_features, back.values.tolist()) == (1, P, [[0.75, 0.25]])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "must be an object, not a list"),
        (wrong("n_features", value=True), "n_features must be an integer, not true or false"),
        (wrong("n_features", value=0), "n_features must be from 1"),
        (wrong("n_features", value=10**30), "an enormous integer"),
        (wrong("n_features", value=2), "outside 0..1"),
        (wrong("arity", value=None), "arity must be a list, not null"),
        (wrong("arity", value=[]), "at least 2"),
        (wrong("arity", 3, value=2), "exactly one tree"),
        (wrong("arity", 0, value=1), "arity must be 0 (leaf) or at least 2"),
        (wrong("arity", 0, value=-3), "arity[0] must be an integer from 0 to"),
        (wrong("arity", value=[3, 2, 2, 0, 0, 0, 2, 0, 2, 0, 0, 0]), "12 entries, one per node"),
        (wrong("arity", 0, value=2.0), "arity[0] must be an integer"),
        (wrong("table", 0, value=-1), "table must be -1 at the leaves"),
        (wrong("table", 0, value=2), "table[0] must be an integer from -1 to 1"),
        (wrong("table", 3, value=0), "table must be -1 at the leaves"),
        (wrong("table", value=[-1]), "11 entries, one per node"),
        (wrong("row", 0, value=2), "row[0] is 2, outside its table"),
        (wrong("row", 0, value=-1), "row[0] must be an integer from 0"),
        (wrong("row", 3, value=7), "row[3] is 7, outside its table"),
        (wrong("statistics", 0, value=[1.0]), "unequal length"),
        (wrong("statistics", value=[[]] * 11), "at least one number"),
        (wrong("values", value=[[1.0]] * 10), "values must be 11 lists"),
        (wrong("values", value=[1.0] * 11), "values must be lists of numbers"),
        (wrong("values", 0, 0, value=float("nan")), "values has a number that is not finite"),
        (wrong("values", 0, 0, value=10**400), "out of range"),
        (wrong("values", 0, 0, value="1"), "values[0][0] must be a number, not a text"),
        (wrong("values", 0, 0, value=False), "values[0][0] must be a number, not true or false"),
        (wrong("tables", value={}), "tables must be a list, not an object"),
        (wrong("tables", value=[{"kind": "threshold"}] * 128), "at most 127"),
        (wrong("tables", 0, value=1), "tables[0] must be an object"),
        (
            wrong("tables", 0, "kind", value="pickle"),
            "unknown kind 'pickle'; known are kernel, linear, network, threshold",
        ),
        (wrong("tables", 0, "kind", value=["linear"]), "the text 'kind'"),
        (wrong("tables", 0, "feature", value=[0.5, 1]), "not a table of threshold questions"),
        (wrong("tables", 0, "feature", value=[3, 0]), "outside 0..2"),
        (wrong("tables", 0, "feature", value=[2**40, 0]), "tables[0] is wrong"),
        (wrong("tables", 0, "feature", value=[[2], [0]]), "not a table of threshold questions"),
        (wrong("tables", 0, "feature", value=[True, 0]), "tables[0].feature"),
        (wrong("tables", 0, "threshold", 0, value=float("inf")), "finite"),
        (wrong("tables", 0, "extra", value=[]), "not a table of threshold questions"),
        (wrong("tables", 1, "weights", 0, value=[1.0]), "tables[1] is wrong"),
        (wrong("tables", 1, "bias", value=[0.0]), "one row per bias"),
        (wrong("tables", 1, value={"kind": "linear"}), "tables[1] lacks the entry 'bias'"),
        (wrong("tables", 1, value=networks(sizes=[[P, 3]] * 3)), "its question has 3 answers"),
        (wrong("tables", 1, value=networks(sizes=[[P, 2]] * 3)), "3 columns and 1 output or at least 3"),
        (wrong("tables", 1, value=networks(sizes=[[P + 1, 1]] * 3)), "3 columns and 1 output or at least 3"),
        (wrong("tables", 1, value=networks(sizes=[[P]] * 3)), "at least two sizes each"),
        (wrong("tables", 1, value=networks(sizes=[[P, 0, 1]] * 3)), "integers above 0"),
        (wrong("tables", 1, value=networks(sizes=[[P, 1.0]] * 3)), "integers above 0"),
        (wrong("tables", 1, value=networks(sizes=[[P, 2**31, 1]] * 3)), "integers above 0"),
        (wrong("tables", 1, value=networks(sizes=[P, 1, 1])), "tables[1] is wrong"),
        (wrong("tables", 1, value=networks(activation=[0, 9, 0])), "activation must be from 0 to 3"),
        (wrong("tables", 1, value=networks(activation=[0, 0])), "one activation and one list of parameters each"),
        (wrong("tables", 1, value=networks(parameters=[[0.0] * 3] * 3)), "number of parameters disagree"),
        (wrong("tables", 1, value=networks(parameters=[[float("nan")] * 4] * 3)), "finite parameters"),
        (wrong("tables", 1, value=kernels(centers=[[0.5]] * 2)), "centers of shape (2, 3)"),
        (wrong("tables", 1, value=kernels(weights=[[1.0]] * 3)), "weights of shape (3, 2)"),
        (wrong("tables", 1, value=kernels(degrees=[0, 11])), "degrees from 0 to 10"),
        (wrong("tables", 1, value=kernels(degrees=[0, 1.5])), "not a table of kernel questions"),
        (wrong("tables", 1, value=kernels(bias=[float("inf")] * 3)), "finite bias"),
        (wrong("tables", 1, value=kernels(slopes=[[float("nan")] * P] * 2)), "finite slopes"),
        (wrong("tables", 1, value=networks(parameters=[["1"] * 4] * 3)), "must be a number, not a text"),
    ],
)
def test_a_wrong_tree_is_one_sentence(record: Any, said: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        tree_from_record(record)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(tree_record(a_tree())))
def test_a_missing_part_is_named(name: str) -> None:
    record = tree_record(a_tree())
    del record[name]
    with pytest.raises(ModelFileError, match=f"the entry '{name}' is missing"):
        tree_from_record(record)


# A file


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "model.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_record_comes_back_from_a_file(tmp_path: Path) -> None:
    record = {"name": "Größe in °C \U0001f332", "numbers": [0.1, 5e-324, -0.0, 1.7976931348623157e308], "none": None}
    write_json(tmp_path / "m.json", record)
    assert repr(read_json(tmp_path / "m.json")) == repr(record)
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON at line 1, column 1"),
        ("a,b\n1,2\n", "not JSON"),
        ("[]", f'does not say "format": "{FORMAT}"'),
        ('{"format": "other"}', "does not say"),
        (f'{{"format": "{FORMAT}", "version": {VERSION}, "model": {{"a": [1, 2', "may be cut short"),
        (f'{{"format": "{FORMAT}", "version": {VERSION + 1}, "model": {{}}}}', "Install a newer softwood"),
        (f'{{"format": "{FORMAT}", "version": "1", "model": {{}}}}', "version must be an integer, not a text"),
        (f'{{"format": "{FORMAT}", "version": true, "model": {{}}}}', "version must be an integer, not true or false"),
        (f'{{"format": "{FORMAT}", "model": {{}}}}', "'version' is missing"),
        (f'{{"format": "{FORMAT}", "version": {VERSION}, "model": 3}}', "model must be an object, not a number"),
        ('{"a": NaN}', "NaN where a number must stand"),
        ('{"a": -Infinity}', "-Infinity where a number must stand"),
        ('{"a": 1e999}', "1e999 is out of range"),
        (f'{{"a": {"9" * 5000}}}', "an integer of more digits"),
        ('{"a": 1, "b": 2, "a": 1}', "the entry 'a' twice"),
        ('{"a": "\\ud800"}', "not UTF-8"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b"\x80\x04\x95", "not UTF-8"),
        ("[" * 200_000, "nested deeper"),
        ('{"a":' * 200_000, "nested deeper"),
    ],
)
def test_a_file_that_is_no_model_is_one_sentence_with_its_path(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ModelFileError) as caught:
        read_json(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ModelFileError, match="larger than 256 MiB"):
        read_json(path)


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    write_json(path, {"old": 1})
    before = path.read_bytes()
    for record in ({"a": float("nan")}, {"a": object()}, {"a": "\ud800"}):
        with pytest.raises(ModelFileError, match="cannot be written as JSON"):
            write_json(path, record)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_json(path, {"new": 1})
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json(tmp_path / "m.json", {})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such file modes")
def test_a_replaced_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    write_json(real, {"old": 1})
    real.chmod(0o600)
    link.symlink_to(real)
    write_json(link, {"new": 1})
    assert link.is_symlink()
    assert read_json(real) == {"new": 1}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_folder_that_does_not_exist_is_named_as_given(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "m.json"
    with pytest.raises(FileNotFoundError) as caught:
        write_json(path, {})
    assert caught.value.filename == str(path)


# Estimators


def fitted_classifier() -> TreeClassifier:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, P))
    y = np.array(["no", "yes", "perhaps"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)]
    return TreeClassifier(training="cart", max_depth=3, random_state=0).fit(X, y)


def fitted_regressor() -> TreeRegressor:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, P))
    return TreeRegressor(training="cart", max_depth=3, random_state=0).fit(X, 1e8 + X[:, 0] ** 2)


@pytest.mark.parametrize("make", [fitted_classifier, fitted_regressor])
def test_a_loaded_estimator_answers_bit_equal(tmp_path: Path, make: Any) -> None:
    estimator = make()
    save(estimator, tmp_path / "m.json")
    back = load(tmp_path / "m.json")
    X = np.random.default_rng(3).normal(size=(500, P))
    assert type(back) is type(estimator)
    assert back.get_params() == estimator.get_params()
    np.testing.assert_array_equal(back.predict(X), estimator.predict(X))
    np.testing.assert_array_equal(back.tree_.statistics, estimator.tree_.statistics)
    np.testing.assert_array_equal(back.feature_importances_, estimator.feature_importances_)


def test_class_labels_keep_their_type(tmp_path: Path) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    for y in (np.array([3, 3, 7, 7]), np.array([True, True, False, False]), np.array(["a", "a", "b", "b"])):
        save(TreeClassifier(training="cart").fit(X, y), tmp_path / "m.json")
        answer = load(tmp_path / "m.json").predict(X)
        assert answer.dtype == y.dtype
        np.testing.assert_array_equal(answer, y)


def test_only_our_estimators_are_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="save needs one of TreeClassifier, TreeRegressor; got dict"):
        save({}, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_an_unknown_estimator_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "m.json", {"estimator": "os.system"})
    with pytest.raises(ModelFileError, match=r"estimator 'os\.system' is unknown"):
        load(tmp_path / "m.json")


# Hostile files


HOSTILE: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 127, 128, 2**31, -(2**31) - 1, 2**63, 10**30, 0.5, -0.0, 1e308, -1e308, "", "0",
    "nan", [], [[]], [[[]]], {}, {"kind": "linear"}, [1, [2]], [0] * 1000, [True], ["x"],
]  # fmt: skip


def mutated(record: Any, rng: random.Random) -> Any:
    """One place of a record replaced, dropped, doubled, swapped or wrapped."""
    record = copy.deepcopy(record)
    holders = [record]
    for holder in holders:
        children = holder.values() if isinstance(holder, dict) else holder
        holders.extend(child for child in children if isinstance(child, (dict, list)) and child)
    holder = rng.choice(holders)
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    action = rng.randrange(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif action == 2:
        other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    elif action == 3:
        holder[key] = [holder[key]]
    else:
        holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    return record


def test_a_mutated_tree_is_a_tree_or_refused() -> None:
    rng, X = random.Random(0), np.random.default_rng(0).normal(size=(20, P))
    trees = [a_tree(), Tree.stump(np.ones(2), np.ones(2), P)]
    records = [tree_record(tree) for tree in trees]
    outcomes = {"tree": 0, "refused": 0}
    for _ in range(6000):
        record = rng.choice(records)
        for _ in range(rng.randint(1, 3)):
            record = mutated(record, rng)
            if not isinstance(record, dict) or not record:
                break
        try:
            tree = tree_from_record(record)
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        outcomes["tree"] += 1
        if tree.n_features == P:
            leaf = tree.apply(X)
            assert tree.topology.is_leaf[leaf].all()
    assert min(outcomes.values()) > 100, outcomes  # both ways out are taken


def test_a_mutated_file_is_a_model_or_refused(tmp_path: Path) -> None:
    rng, X = random.Random(1), np.random.default_rng(0).normal(size=(20, P))
    path, outcomes = tmp_path / "m.json", {"model": 0, "refused": 0}
    originals = []
    for estimator in (fitted_classifier(), fitted_regressor()):
        save(estimator, path)
        originals.append(path.read_bytes())
    for _ in range(3000):
        data = rng.choice(originals)
        for _ in range(rng.randint(1, 2)):
            data = spoiled(data, rng)
        path.write_bytes(data)
        try:
            estimator = load(path)
        except ModelFileError:
            outcomes["refused"] += 1
            continue
        outcomes["model"] += 1
        if estimator.n_features_in_ == P:
            with np.errstate(over="ignore"):
                assert len(estimator.predict(X)) == len(X)
    assert min(outcomes.values()) > 100, outcomes


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """A file cut short, with bytes changed, or with one entry of its JSON replaced."""
    action = rng.randrange(4)
    if action == 0:
        return data[: rng.randrange(len(data))]
    if action == 1:
        at = rng.randrange(len(data) + 1)
        return (
            data[:at] + rng.choice([b"0", b"9", b"-", b"e9", b"]", b"}", b'"', b",", b"\xff", b"\n"]) + data[at + 1 :]
        )
    try:
        return json.dumps(mutated(json.loads(data), rng)).encode()
    except (ValueError, IndexError):
        return data
