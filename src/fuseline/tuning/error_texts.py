"""Errors as outcomes of trials have them: texts, which any process and any storage can hold."""

from __future__ import annotations

from fuseline.errors import FuselineError


def error_texts(error: FuselineError) -> dict[str, str]:
    """The error as an outcome has it: its parts that are not empty."""
    return {name: str(value) for name, value in error.to_json().items() if value is not None}
