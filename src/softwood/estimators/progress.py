"""Progress: who hears of a fit while it runs.

scikit-learn's callbacks (1.9 and later, experimental there) are told each tenth of the work as a subtask; with
``verbose`` a plain line per tenth goes to standard error, because standard output belongs to results. A callback's
wish to stop is not heard: a trainer that is interrupted has no tree to show.
"""

from __future__ import annotations

import sys
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn before 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nobody to call back."""

    def with_callbacks(method: Any) -> Any:
        """Nothing to tear down."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]

TENTHS = 10


class Progress:
    """Told by trainers, tells callbacks and people."""

    def __init__(self, estimator: Any, X: Any, y: Any, per_impurity: float) -> None:
        self._estimator, self._X, self._y, self._per_impurity = estimator, X, y, per_impurity
        self._done = 0
        self._context = None
        if HAS_CALLBACKS:
            self._context = estimator._init_callback_context(max_subtasks=TENTHS)
            self._context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def __call__(self, share: float, objective: float) -> None:
        """A share of the work is done and the objective per unit of weight is this."""
        done = min(TENTHS, int(share * TENTHS + 1e-9))
        if done <= self._done:
            return
        if self._context is not None:
            for _ in range(done - self._done):
                self._tell(self._context)
        self._done = done
        if self._estimator.verbose:
            name, value = type(self._estimator).__name__, objective * self._per_impurity
            print(f"{name}: {done * 100 // TENTHS:3d}% done, objective {value:.6g}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """The estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, X=self._X, y=self._y, reconstruction_attributes=dict
            )

    def _tell(self, context: Any) -> None:
        tenth = context.subcontext(task_name="tenth of the work")
        tenth.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
        tenth.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)
