"""The command line as a user meets it: results on stdout, words on stderr, exit codes, one sentence per error."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import softwood.cli
from softwood import __version__, load
from softwood.cli import main

CART = ["--training", "cart", "--max-depth", "3"]
IRIS = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with iris.csv (texts as target) and diabetes.csv (numbers)."""
    monkeypatch.chdir(tmp_path)
    iris = load_iris()
    rows = [[*row, iris.target_names[kind]] for row, kind in zip(iris.data.tolist(), iris.target, strict=True)]
    write_csv("iris.csv", [*IRIS, "species"], rows)
    diabetes = load_diabetes()
    rows = np.column_stack([diabetes.data, diabetes.target]).tolist()
    write_csv("diabetes.csv", [*diabetes.feature_names, "progress"], rows)
    return tmp_path


def write_csv(path: str, header: list[str], rows: list[list[Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def fit_iris(*options: str) -> int:
    return main(["fit", "iris.csv", "--target", "species", "--out", "iris.json", *CART, *options])


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# What works


def test_fit_then_predict_then_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit_iris() == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "150 rows, 4 columns, target 'species': classification (3 classes" in err
    assert "written to iris.json" in err

    assert main(["predict", "iris.json", "iris.csv", "--proba"]) == 0
    out, err = capsys.readouterr()
    answers = table(out)
    assert list(answers[0]) == [
        "prediction", "probability_setosa", "probability_versicolor", "probability_virginica",
    ]  # fmt: skip
    X = load_iris().data
    model = load("iris.json")
    del model.feature_names_in_
    assert [row["prediction"] for row in answers] == model.predict(X).tolist()
    assert [float(row["probability_setosa"]) for row in answers] == model.predict_proba(X)[:, 0].tolist()
    assert err == ""

    assert main(["show", "iris.json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("TreeClassifier on 4 columns: depth 3, ")
    assert "classes: setosa, versicolor, virginica" in out
    assert "petal" in out
    assert err == ""


def test_columns_are_matched_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit_iris("--quiet")
    main(["predict", "iris.json", "iris.csv"])
    straight = capsys.readouterr().out
    rows = [["note", *row[::-1].tolist()] for row in load_iris().data]
    write_csv("turned.csv", ["remark", *IRIS[::-1]], rows)
    assert main(["predict", "iris.json", "turned.csv"]) == 0
    assert capsys.readouterr().out == straight


def test_quiet_says_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit_iris("--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_numbers_are_regression_and_whole_numbers_of_few_kinds_are_classes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "diabetes.csv", "--target", "progress", "--out", "m.json", *CART]) == 0
    assert "regression (214 different numbers" in capsys.readouterr().err
    assert main(["predict", "m.json", "diabetes.csv", "--out", "answers.csv"]) == 0
    assert capsys.readouterr().out == ""
    answers = [float(row["prediction"]) for row in table(Path("answers.csv").read_text())]
    assert np.corrcoef(answers, load_diabetes().target)[0, 1] > 0.6

    write_csv("whole.csv", ["x", "y"], [[i, i % 2 + 3] for i in range(30)])
    assert main(["fit", "whole.csv", "--target", "y", "--out", "m.json", *CART]) == 0
    assert "classification (2 classes" in capsys.readouterr().err
    assert load("m.json").classes_.tolist() == [3, 4]
    assert main(["fit", "whole.csv", "--target", "y", "--out", "m.json", "--task", "regression", *CART]) == 0
    assert type(load("m.json")).__name__ == "TreeRegressor"


def test_dropped_columns_are_not_needed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit_iris("--drop", "petal length", "--drop", "petal width") == 0
    assert load("iris.json").feature_names_in_.tolist() == IRIS[:2]


def test_options_reach_the_estimator(folder: Path) -> None:
    assert fit_iris("--min-samples-leaf", "20", "--max-leaf-nodes", "none", "--impurity", "entropy", "--seed", "5") == 0
    model = load("iris.json")
    assert (model.min_samples_leaf, model.max_leaf_nodes, model.impurity) == (20, None, "entropy")
    assert (model.random_state, model.training, model.max_depth) == (5, "cart", 3)


def test_standard_input(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fit_iris("--quiet")
    monkeypatch.setattr(sys, "stdin", io.StringIO(Path("iris.csv").read_text()))
    assert main(["predict", "iris.json", "-", "--out", "-"]) == 0
    assert len(table(capsys.readouterr().out)) == 150


def test_semicolons_blank_lines_a_byte_order_mark_and_many_rows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["\ufeffa;b;y", *(f'{i // 100};"{i / 7}";{"low" if i < 9000 else "high"}' for i in range(20_000)), "", ""]
    Path("marks.csv").write_text("\n".join(lines), encoding="utf-8")
    assert main(["fit", "marks.csv", "--target", "y", "--out", "m.json", *CART]) == 0
    assert "20000 rows, 2 columns" in capsys.readouterr().err
    assert load("m.json").feature_names_in_.tolist() == ["a", "b"]
    assert main(["predict", "m.json", "marks.csv"]) == 0
    assert [row["prediction"] for row in table(capsys.readouterr().out)] == ["low"] * 9000 + ["high"] * 11_000


def test_parquet_answers_as_csv_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    iris = load_iris()
    columns = dict(zip(IRIS, iris.data.T, strict=True)) | {"species": iris.target_names[iris.target].tolist()}
    parquet.write_table(pyarrow.table(columns), "iris.parquet")
    fit_iris("--quiet")
    from_csv = Path("iris.json").read_bytes()
    assert main(["fit", "iris.parquet", "--target", "species", "--out", "iris.json", "--quiet", *CART]) == 0
    assert Path("iris.json").read_bytes() == from_csv
    assert main(["predict", "iris.json", "iris.parquet"]) == 0
    assert len(table(capsys.readouterr().out)) == 150

    parquet.write_table(pyarrow.table({name: [1.0, None] for name in IRIS}), "gaps.parquet")
    assert main(["predict", "iris.json", "gaps.parquet"]) == 1
    assert "Column 'sepal length' of gaps.parquet is empty in data row 2" in capsys.readouterr().err


def test_parquet_without_pyarrow_says_what_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["fit", "a.parquet", "--target", "y", "--out", "m.json"]) == 1
    assert "pip install 'softwood[parquet]'" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["wine", "diabetes"])
def test_demo_prints_both_trees_and_the_text(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", data, "--max-depth", "2"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == [
        "tree",
        "R2" if data == "diabetes" else "accuracy",
        *["depth", "questions", "leaves", "seconds"],
    ]
    for line, name in zip(lines[1:3], ["CART", "softwood"], strict=True):
        label, score, depth, questions, leaves, _ = line.split()
        assert label == name
        assert 0.1 < float(score) <= 1
        assert int(depth) <= 2
        assert int(leaves) == int(questions) + 1
    assert "|-- no: " in out
    assert "rows to learn from" in err


# What does not


def failure(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line on stderr of a command that fails."""
    assert main(list(argv)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("softwood: ")
    assert "Traceback" not in err
    return last


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "data.csv is empty"),
        ("x,y\n", "no rows of data"),
        ("y\n1\n", "no column to learn from besides 'y'"),
        ("x,x,y\n1,2,a\n", "two columns named 'x'"),
        ("x,z\n1,a\n", "no column 'y'. Its columns are x, z"),
        ("x,y\n1,a\n2\n", "Line 3 of data.csv has 1 cells, but its header names 2 columns"),
        ("x,y\n1,a\n2,\n", "Column 'y' of data.csv is empty in data row 2"),
        ("x,y\n1,a\n,b\n", "Column 'x' of data.csv is empty in line 3"),
        ("x,y\n1,a\nred,b\n", "Column 'x' of data.csv has the text 'red' in line 3. Encode it as numbers"),
        ("x,y\n1,a\nnan,b\n", "Column 'x' of data.csv has the text 'nan' in line 3"),
        ("x,y\n1e999,a\n2,b\n", "Column 'x' of data.csv has the text '1e999' in line 2"),
        ("x;y\n1,5;a\n2;b\n", "has the text '1,5'"),
        (b"x,y\n\xff,a\n", "not text in UTF-8"),
        ('x,y\n1,"' + "a" * 200_000 + '"\n', "not a CSV file: field larger than field limit"),
    ],
)
def test_bad_data_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | bytes, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in failure(capsys, "fit", "data.csv", "--target", "y", "--out", "m.json")
    assert not Path("m.json").exists()


def test_wrong_words_are_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ["fit", "iris.csv", "--target", "species", "--out"]
    assert "--drop names 'colour'" in failure(capsys, *fit, "m.json", "--drop", "colour")
    assert "needs a target of finite numbers; it has 'setosa'" in failure(
        capsys, *fit, "m.json", "--task", "regression"
    )
    assert "max_depth must be" in failure(capsys, *fit, "m.json", "--max-depth", "deep")
    assert "in a folder that does not exist" in failure(capsys, *fit, "absent/m.json")
    assert "is a folder" in failure(capsys, *fit, ".")
    regress = ["fit", "diabetes.csv", "--target", "progress", "--out", "m.json"]
    assert "--class-weight has no meaning for regression" in failure(capsys, *regress, "--class-weight", "balanced")
    assert "absent.csv: No such file or directory." in failure(capsys, "fit", "absent.csv", *fit[2:], "m.json")


def test_a_model_that_does_not_fit_the_data_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit_iris("--quiet")
    said = failure(capsys, "predict", "iris.json", "diabetes.csv")
    assert "diabetes.csv lacks 4 of the 4 columns needed, the first being 'sepal length'" in said
    assert "iris.csv is not a usable model file: it is not JSON" in failure(capsys, "show", "iris.csv")
    assert "absent.json: No such file" in failure(capsys, "show", "absent.json")
    main(["fit", "diabetes.csv", "--target", "progress", "--out", "d.json", "--quiet", *CART])
    assert "--proba needs a model of classes" in failure(capsys, "predict", "d.json", "diabetes.csv", "--proba")


def test_an_error_of_ours_is_one_sentence_unless_debug(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(softwood.cli, "load", broken)
    assert "An unexpected ZeroDivisionError: oh. Run again with --debug" in failure(capsys, "show", "m.json")
    with pytest.raises(ZeroDivisionError):
        main(["show", "m.json", "--debug"])


def test_control_c_is_one_word(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(softwood.cli, "load", interrupted)
    assert failure(capsys, "show", "m.json") == "softwood: Stopped."


@pytest.mark.parametrize(
    "argv", [[], ["grow"], ["fit", "a.csv"], ["fit", "a.csv", "--target", "y", "--out", "m", "--training", "magic"]]
)
def test_wrong_usage_exits_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: " in err


def test_help_opens_with_two_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "examples:"
    assert all(line.startswith("  softwood ") for line in lines[3:5])


def test_fit_help_has_every_parameter_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name in softwood.TreeClassifier().get_params():
        if name not in {"random_state", "n_jobs", "verbose", "warm_start"}:
            assert f"--{name.replace('_', '-')} " in text
    assert "(default: gini for classification, variance for regression)" in text


def test_version_and_python_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "softwood", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"softwood {__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes close differently there")
def test_a_reader_that_leaves_early_is_no_accident(folder: Path) -> None:
    fit_iris("--quiet")
    Path("long.csv").write_text(",".join(IRIS) + "\n" + "5.1,3.5,1.4,0.2\n" * 50_000)
    with subprocess.Popen(
        [sys.executable, "-m", "softwood", "predict", "iris.json", "long.csv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"prediction\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 1
