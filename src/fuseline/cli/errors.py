"""`fuseline errors`: the codes and their pages."""

from __future__ import annotations

import click

from fuseline.cli.console import emit, say
from fuseline.cli.options import json_option
from fuseline.errors import ERROR_TITLES, FuselineError


@click.command()
@click.argument("code", required=False)
@json_option
def errors(code: str | None, as_json: bool) -> None:
    """List the error codes, or name one CODE; each has a page in docs/errors/."""
    if code is not None and code not in ERROR_TITLES:
        raise FuselineError("E0501", f"no error has the code {code}", hint="`fuseline errors` lists them")
    chosen = {code: ERROR_TITLES[code]} if code else ERROR_TITLES
    if as_json:
        emit("errors", {"errors": [{"code": key, "title": title, "page": page_of(key)} for key, title in chosen.items()]})
    else:
        say([f"{key}  {title}  ({page_of(key)})" for key, title in chosen.items()])


def page_of(code: str) -> str:
    """Where a code is documented, relative to the project."""
    return f"docs/errors/{code}.md"
