"""`python -m fuseline` is the `fuseline` command."""

from __future__ import annotations

from fuseline.cli.entry import run

if __name__ == "__main__":
    run()
