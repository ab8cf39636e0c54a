"""`--list-rules`: the fusion rules in the order in which they are asked, with where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from fuseline.cli.console import emit, say

rules_listing_option = click.option(
    "--list-rules", is_flag=True, help="List the fusion rules, those of --rules and of packages included, and stop."
)


def show_rules(files: Sequence[Path], command: str, *, as_json: bool) -> None:
    """Prints all rules with those of `files`; raises E0704 for what is wrong with one."""
    from fuseline.passes.fusion.user_rules import list_rules

    infos = list_rules(files)
    if as_json:
        emit(command, {"rules": [asdict(info) for info in infos]})
        return
    table = Table("rule", "merges", "after", "from", "what it is about", box=None, header_style="bold", pad_edge=False)
    for info in infos:
        table.add_row(info.name, info.shape, ", ".join(info.after) or "-", info.origin, info.summary)
    say(table)
