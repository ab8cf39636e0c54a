"""`python -m fuseline.runtime MODEL.fuse` runs an artifact; NumPy is all it needs."""

from __future__ import annotations

import sys

from fuseline.runtime.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
