"""`fuseline errors`: the codes and their pages."""

from __future__ import annotations

from pathlib import Path

import click

from fuseline.cli.console import emit, say
from fuseline.cli.options import json_option
from fuseline.errors import ERROR_TITLES, FuselineError


@click.command()
@click.argument("code", required=False)
@json_option
def errors(code: str | None, as_json: bool) -> None:
    """List the error codes, or show the page of one CODE."""
    if code is not None and code not in ERROR_TITLES:
        raise FuselineError("E0501", f"no error has the code {code}", hint="`fuseline errors` lists them")
    chosen = [code] if code else list(ERROR_TITLES)
    if as_json:
        emit("errors", {"errors": [{"code": key, "title": ERROR_TITLES[key], "page": page_text(key)} for key in chosen]})
    elif code:
        say(page_text(code))
    else:
        say([f"{key}  {ERROR_TITLES[key]}" for key in chosen])


def page_text(code: str) -> str:
    """The documentation of a code: beside this file in an installed package, in docs/errors of a checkout."""
    here = Path(__file__)
    places = (here.parent / "error_pages", here.parents[3] / "docs" / "errors")
    path = next((place / f"{code}.md" for place in places if (place / f"{code}.md").exists()), None)
    return path.read_text(encoding="utf-8") if path else f"# {code}: {ERROR_TITLES[code]}\n"
