"""Arrays that cannot be written, for records that must not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """A read-only array in C order of its own memory: nobody who holds what it was made from can change it."""
    given = np.asarray(array, dtype=dtype)
    if given.flags.owndata and given.flags.c_contiguous and not given.flags.writeable:
        return given
    own = np.array(given, order="C")
    own.setflags(write=False)
    return own
