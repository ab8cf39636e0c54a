"""The code of a program as text: that of each executable's kernels, under headings that name the dispatches it runs
(`--emit kernel|llvm|asm`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord, DispatchRecord

if TYPE_CHECKING:
    from fuseline.targets.target import Target


def code_listing(record: CompileRecord, target: Target, form: str, dispatch: str | None = None) -> str:
    """The code that `target` kept for the dispatches of `record`, in the form of `targets.target.CODE_FORMS`: each
    kernel once, in the order in which a run first launches it.

    `dispatch`: the name or the number of the only one to be listed; raises E0501 for one that there is not.
    """
    chosen = record.dispatches if dispatch is None else [find_dispatch(record, dispatch)]
    symbols = dict.fromkeys(symbol for one in chosen for symbol in one.kernels)
    return target.code_text({symbol: _heading(symbol, record.dispatches) for symbol in symbols}, form)


def find_dispatch(record: CompileRecord, word: str) -> DispatchRecord:
    """The dispatch whose name or number `word` is. Raises E0501 where there is none."""
    for number, dispatch in enumerate(record.dispatches):
        if dispatch.is_called(word, number):
            return dispatch
    hint = f"the numbers are 0 to {len(record.dispatches) - 1}; `fuseline stats MODEL --dispatches` lists the names"
    raise FuselineError("E0501", f"no dispatch is called {word!r}", node=word, hint=hint)


def _heading(symbol: str, dispatches: Sequence[DispatchRecord]) -> tuple[str, ...]:
    """The lines above a kernel: its name and families, and who launches it."""
    users = [one for one in dispatches if symbol in one.kernels]
    families = " ".join(dict.fromkeys(one.family for one in users))
    executables = " ".join(dict.fromkeys(f"@{one.executable}" for one in users))
    names = " ".join(one.label for one in users)
    return (f"{symbol}: {families}", f"executable {executables}", f"dispatch {names}")
