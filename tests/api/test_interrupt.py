"""Ctrl-C stops a fit within a second, in every way of training: a process of its own is sent the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

CHILD = """
import sys
import threading

import numpy as np

from softwood import TreeClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, 40))
y = rng.integers(0, 4, len(X))
tree = TreeClassifier({parameters}, random_state=0)
threading.Timer(0.3, print, ["fitting"], {{"flush": True}}).start()  # by then the fit below is under way
try:
    tree.fit(X, y)
except KeyboardInterrupt:
    print("stopped", flush=True)
else:
    print("finished before it was stopped: the test needs a longer fit", flush=True)
"""
FITS = {
    "global, Adam": (20_000, "max_depth=6, max_iter=10**7, search=False"),
    "global, Adam, two threads": (20_000, "max_depth=6, max_iter=10**7, search=False, n_jobs=2"),
    "global, lazy": (20_000, "max_depth=9, max_iter=10**7, search=False"),
    "global, early stopping": (
        20_000,
        "max_depth=6, max_iter=10**7, search=False, early_stopping=True, n_iter_no_change=100, tol=0.0",
    ),
    "global, L-BFGS": (200_000, "max_depth=8, max_iter=10**4, search=False, solver='lbfgs', tol=0.0"),
    "global, searched": (20_000, "max_depth=8, max_iter=20_000, search=True"),
    "greedy": (20_000, "training='greedy', max_depth=12, max_iter=10**6"),
    "cart": (600_000, "training='cart', max_depth=None, min_samples_leaf=2"),
    "cart, two threads": (600_000, "training='cart', max_depth=None, n_jobs=2"),
}


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize("fit", FITS)
def test_an_interrupt_stops_a_fit_within_a_second(fit: str) -> None:
    rows, parameters = FITS[fit]
    code = CHILD.format(rows=rows, parameters=parameters)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "fitting\n"
            child.send_signal(signal.SIGINT)
            start = time.monotonic()
            assert child.stdout.readline() == "stopped\n"
            assert time.monotonic() - start < 1
        finally:
            child.kill()
