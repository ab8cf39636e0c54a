"""Rounds of what repeats until nothing changes: every such loop of the compiler says how many rounds it may take at the
most.

A compile never hangs: a loop whose rounds do not end is a defect, and says so by its name instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.errors import FuselineError


def rounds(what: str, most: int) -> Iterator[int]:
    """The numbers of the rounds, from 0, for a loop that leaves by `break` or `return`.

    >>> value = 40
    >>> for _ in rounds("halving", most=10):
    ...     if value == 0:
    ...         break
    ...     value //= 2

    Args:
        what: the loop, as its error names it.
        most: more rounds than this are never needed: what falls with each of them starts there.

    Raises E0901 naming `what` where the loop would go on.
    """
    yield from range(most + 1)
    raise FuselineError(
        "E0901", f"{what} does not come to an end within {most + 1} rounds", node=what, hint="please report the model"
    )
