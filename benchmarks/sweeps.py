"""One training step against the least it must cost: dense and lazy sweeps, one thread and two.

    python -m benchmarks.sweeps [--threads 1 2]

The floor of a step is its vector operations at the rate at which this machine multiplies and adds float32 numbers that
are in registers (peak.cpp, compiled and run beside each measurement): a multiply-add counts as one operation, and so
does anything else. docs/performance.md says how the operations are counted. Bytes are what comes from beyond the
caches. A step is measured in the middle of a descent, when gates have begun to shut, with the tree held still.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cart import source_of, timed
from sklearn.datasets import make_classification

from softwood.impurity import AbstractImpurity, Gini, Variance
from softwood.source import ArraySource, canonical_rows
from softwood.split.linear import Linear
from softwood.targets import centred_moments
from softwood.topology import Topology
from softwood.train.base import Run, root
from softwood.train.engine import Adam, Memory, engine_for
from softwood.train.grow_hard import GrowHard
from softwood.train.refine import asked_of, completed
from softwood.train.sampled import Sampled
from softwood.train.schedule import cosine

N_ROWS = 16_000
STEPS, REPEATS = 50, 9  # of one call that is timed, a twentieth of a fit; calls, of which the fastest counts
WARM_UP = 300  # steps of 1000 before the tree is held still
LAZY_OVERHEAD = 2  # the core's rule: a step is lazy where it visits less than one pair in so many
PER_GATE = 30  # vector operations of a (row, node) pair besides products: sigmoid 22, reach 2, costs 5, offset 1


@dataclass(frozen=True)
class Shape:
    """A step to measure."""

    depth: int
    p: int
    n_classes: int  # 0: numbers
    batch: int
    tolerance: float = 1e-3

    @property
    def target(self) -> str:
        return f"{self.n_classes} classes" if self.n_classes else "numbers"

    def source(self, n_threads: int) -> tuple[ArraySource, AbstractImpurity]:
        classes = self.n_classes or 4
        X, y = make_classification(
            N_ROWS, self.p, n_informative=max(2, self.p * 2 // 3), n_redundant=0, n_classes=classes, random_state=0
        )
        X = np.ascontiguousarray(X, dtype=np.float32)
        if self.n_classes:
            source = source_of(X, y)
            source.n_threads = n_threads
            return source, Gini()
        numbers = np.sin(X[:, 0]) + y
        order, copies, content, weight = canonical_rows(X, numbers, np.ones(N_ROWS))
        return ArraySource(X, order, copies, content, centred_moments(numbers[order], weight)[0], n_threads), Variance()


SHAPES = (
    Shape(4, 10, 2, 512),
    Shape(6, 36, 6, 2048),
    Shape(6, 50, 0, 2048),
    Shape(8, 16, 10, 2048, 0.0),
    Shape(8, 16, 10, 2048),
    Shape(10, 16, 26, 2048, 0.0),
    Shape(10, 16, 26, 2048),
    Shape(12, 16, 26, 2048),
)


def peak_program(folder: Path) -> Path:
    """The compiled probe of peak.cpp."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise SystemExit("benchmarks.sweeps needs a C++ compiler to measure the machine's peak; set CXX.")
    program = folder / "peak"
    source = Path(__file__).with_name("peak.cpp")
    subprocess.run(
        [compiler, "-O3", "-march=native", "-std=c++20", "-pthread", str(source), "-o", str(program)], check=True
    )
    return program


def peak_operations(program: Path, n_threads: int) -> float:
    """Multiply-adds of float32 per second."""
    done = subprocess.run([str(program), str(n_threads)], capture_output=True, text=True, check=True)
    return 1e9 * float(done.stdout)


def bandwidth() -> float:
    """Bytes per second read and written by a copy of an array far larger than the caches, on one thread."""
    a = np.zeros(2**27, dtype=np.uint8)
    out = np.ones_like(a)
    return 2 * a.size / min(timed(partial(np.copyto, out, a))[0] for _ in range(5))


def middle_of_descent(shape: Shape, n_threads: int) -> tuple[Any, np.ndarray, Memory, Any]:
    """Engine, theta, memory and batches as they are in the middle of a descent."""
    source, impurity = shape.source(n_threads)
    run = Run(np.random.default_rng(0), n_threads)
    tree = GrowHard(shape.depth).train(root(source, impurity), source, impurity, run)
    topology, origin = completed(tree.topology, shape.depth)
    asked = asked_of(tree, origin[topology.internal])
    theta = Linear().soften(asked, source.units, run.rng).astype(np.float32)
    engine = engine_for(source, topology, Linear(), impurity, shape.tolerance)
    memory, batches = Memory.fresh(theta.size, source.n), source.batches(run.rng, shape.batch)
    rates = cosine(0.15, 1000)[:WARM_UP]
    for part in np.array_split(rates, 20):
        engine.descend(theta, memory, batches.draw(len(part)), part, Adam(0.1))
    return engine, theta, memory, batches


def operations(shape: Shape, topology: Topology, share: float) -> float:
    """Vector operations on single numbers that a step must take, if a (row, node) pair is visited with this share.

    Two products of p, two of the statistics a row has (one of class counts, three of moments), the gate, and for each
    parameter about thirty operations of Adam with its root and its division.
    """
    pairs = share * shape.batch * topology.internal.size
    statistics = 1 if shape.n_classes else 3
    return pairs * (2 * shape.p + 2 * statistics + PER_GATE) + 30 * topology.internal.size * (shape.p + 1)


def bytes_moved(shape: Shape, topology: Topology) -> float:
    """Rows of the batch, and parameters with Adam's two memories, read and written."""
    row = 4 * shape.p + (8 if shape.n_classes else 12)
    return shape.batch * row + 24.0 * topology.internal.size * (shape.p + 1)


def measured(shape: Shape, n_threads: int) -> tuple[float, float, Topology]:
    """Seconds of one step, the share of pairs visited, and the topology."""
    engine, theta, memory, batches = middle_of_descent(shape, n_threads)
    still = np.full(STEPS, 1e-12, dtype=np.float32)
    seconds = min(
        timed(partial(engine.descend, theta, memory, batches.draw(STEPS), still, Adam(0.0)))[0] for _ in range(REPEATS)
    )
    return seconds / STEPS, memory.visited[-1], engine.topology


def line(shape: Shape, n_threads: int, program: Path, speed: float) -> str:
    seconds, share, topology = measured(shape, n_threads)
    peak = peak_operations(program, n_threads)
    kind = "lazy" if share * LAZY_OVERHEAD < 1 else "dense"
    share = share if kind == "lazy" else 1.0
    floor = operations(shape, topology, share) / peak
    memory = bytes_moved(shape, topology) / speed
    return (
        f"d{shape.depth:<3} p {shape.p:<4} {shape.target:<11} batch {shape.batch:<5} {kind:<10} {share:7.3f} "
        f"{n_threads:>7} {1e6 * seconds:>9.1f} {1e6 * floor:>9.1f} {1e6 * memory:>9.1f} {seconds / floor:>7.2f}"
    )


def sampled_line(n_threads: int, n_draws: int) -> str:
    """A step of sampled paths beside the exact dense one, at depth 12."""
    shape = Shape(12, 16, 26, 2048, 0.0)
    exact, theta, memory, batches = middle_of_descent(shape, n_threads)
    sampled = Sampled(n_draws)(exact.source, exact.topology, exact.split, exact.impurity, 0.0)
    still = np.full(STEPS, 1e-12, dtype=np.float32)
    seconds = [
        min(timed(partial(each.descend, theta, memory, batches.draw(STEPS), still, Adam(0.0)))[0] for _ in range(count))
        / STEPS
        for each, count in ((sampled, REPEATS), (exact, 2))
    ]
    return (
        f"d{shape.depth:<3} p {shape.p:<4} {shape.target:<11} batch {shape.batch:<5} {n_draws:>5} {n_threads:>7} "
        f"{1e6 * seconds[0]:>9.1f} {1e6 * seconds[1]:>9.1f} {seconds[1] / seconds[0]:>7.1f}"
    )


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description=__doc__.split("\n")[0])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args(given)
    speed = bandwidth()
    print(f"copying: {speed / 1e9:.1f} GB/s\n")
    with tempfile.TemporaryDirectory() as folder:
        program = peak_program(Path(folder))
        for n_threads in options.threads:
            print(f"{'step':<46} {'visited':>7} {'threads':>7} {'us':>9} {'floor us':>9} {'bytes us':>9} {'ratio':>7}")
            for shape in SHAPES:
                print(line(shape, n_threads, program, speed), flush=True)
            print()
    print(f"{'sampled paths':<34} {'draws':>6} {'threads':>7} {'us':>9} {'dense us':>9} {'times':>7}")
    for n_threads in options.threads:
        for n_draws in (1, 4):
            print(sampled_line(n_threads, n_draws), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
