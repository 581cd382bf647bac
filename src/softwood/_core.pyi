# The compiled core: arrays in, arrays out. Names, shapes and checks are in core/bindings.cpp, which refuses every
# wrong length and index itself; callers annotate what they get. So a kernel is declared in one place only, and the
# type checker needs no build.
from typing import Any

def __getattr__(name: str) -> Any: ...
