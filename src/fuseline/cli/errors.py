"""`fuseline errors`: the error codes and the reasons why ops were not fused, with their pages."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

import click

from fuseline.cli.console import emit, say
from fuseline.cli.options import json_option
from fuseline.errors import ERROR_TITLES, FuselineError
from fuseline.report.advice import ADVICE

WHY_NOT_PAGE = "why-not.md"


@click.command()
@click.argument("code", nargs=-1)
@json_option
def errors(code: tuple[str, ...], as_json: bool) -> None:
    """List the error codes, or show the page of one CODE: of an error, or of a reason why two ops were not fused."""
    chosen = found_code(" ".join(code)) if code else None
    codes = list(ERROR_TITLES) if chosen is None else [chosen] if chosen in ERROR_TITLES else []
    reasons = list(ADVICE) if chosen is None else [chosen] if chosen in ADVICE else []
    if as_json:
        listed = [{"code": key, "title": ERROR_TITLES[key], "page": page_text(key)} for key in codes]
        emit(
            "errors",
            {
                "errors": listed,
                "why_not": [{"code": key, "advice": ADVICE[key], "page": page_text(key)} for key in reasons],
            },
        )
    elif chosen is not None:
        say(page_text(chosen))
    else:
        say(
            [
                *(f"{key}  {ERROR_TITLES[key]}" for key in codes),
                "",
                "why two ops were not fused:",
                *(f"  {key}" for key in reasons),
            ]
        )


def found_code(text: str) -> str:
    """The code that `text` means, however it is written: `E0101`, `e101`, `101`; `two-roots`, `Two roots`, `two_roots`.

    Raises FuselineError (E0501) for what is none.

    >>> found_code("e101"), found_code("Two roots"), found_code("artifact damaged")
    ('E0101', 'two-roots', 'E0401')
    """
    number = re.fullmatch(r"(?:error)?[\s:]*e?[\s_-]*0*([0-9]{1,4})\W*", text.strip().lower())
    if number is not None and f"E{int(number[1]):04d}" in ERROR_TITLES:
        return f"E{int(number[1]):04d}"
    reason = re.sub(r"[\s_]+", "-", text.strip().lower())
    if reason in ADVICE:
        return reason
    titles = {title: key for key, title in ERROR_TITLES.items()}
    near = get_close_matches(text.strip().lower(), titles, 1)
    if near:
        return titles[near[0]]
    like = get_close_matches(reason, ADVICE, 3)
    hint = f"did you mean {' or '.join(like)}?" if like else "`fuseline errors` lists them"
    raise FuselineError("E0501", f"nothing has the code {text}", hint=hint)


def page_text(code: str) -> str:
    """The documentation of a code: beside this file in an installed package, in docs of a checkout."""
    if code in ADVICE:
        return _section(code)
    page = _page(f"{code}.md", "errors")
    return page if page is not None else f"# {code}: {ERROR_TITLES[code]}\n"


def _section(reason: str) -> str:
    """What the page about reasons says of one, and what would change it."""
    page = _page(WHY_NOT_PAGE, "") or ""
    found = re.search(rf"^## {re.escape(reason)}\n+(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return f"# {reason}\n\n{found[1].strip() + chr(10) + chr(10) if found else ''}To change it: {ADVICE[reason]}.\n"


def _page(name: str, folder: str) -> str | None:
    here = Path(__file__)
    places = (here.parent / "error_pages" / name, here.parents[3] / "docs" / folder / name)
    path = next((place for place in places if place.exists()), None)
    return path.read_text(encoding="utf-8") if path else None
