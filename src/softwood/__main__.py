"""python -m softwood"""

from __future__ import annotations

import sys

from softwood.cli import main

if __name__ == "__main__":
    sys.exit(main())
