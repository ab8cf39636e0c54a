"""Sizes that a model must mean to be equal where it broadcasts them, and those among them that need not be.

x[h] + y[2 * ceil(h / 2)]       equal for every even h: meant to be equal, which the program requires
                                1 against 2 for h = 1: legal, too, and left to a second program
"""

from __future__ import annotations

from functools import lru_cache

from fuseline.ir.dim import Dim, Symbol, evaluate, lower_bound, sub, substitute, symbol, symbols, upper_bound

TRIED = 128
"""Values of a symbol that are tried one by one."""


@lru_cache(maxsize=1 << 12)
def taken_equal(lhs: Dim, rhs: Dim, *, literal: bool = False) -> bool:
    """Whether two sizes are taken to be equal: neither can be 1, or both are computed from the same symbols, of which
    some make them equal and not 1.

    `literal`: not the latter where one of them may be 1 and the other one not.
    """
    difference = sub(lhs, rhs)
    low, high = lower_bound(difference), upper_bound(difference)
    if (low is not None and low > 0) or (high is not None and high < 0):
        return False
    if _above_one(lhs) and _above_one(rhs):
        return True
    return symbols(lhs) == symbols(rhs) and _meet(lhs, rhs) and not (literal and one_alone(lhs, rhs))


@lru_cache(maxsize=1 << 12)
def one_alone(lhs: Dim, rhs: Dim) -> bool:
    """Whether one of two sizes may be 1 where the other one is not; False only where that is known.

    >>> from fuseline.ir.dim import mul
    >>> h = symbol("h")
    >>> one_alone(h, mul(h, 2)), one_alone(h, sub(mul(h, 2), 1))
    (True, False)
    """
    if _above_one(lhs) and _above_one(rhs):
        return False
    names = symbols(lhs) | symbols(rhs)
    return len(names) != 1 or _one_alone_for(names.pop(), lhs, rhs)


def _one_alone_for(name: Symbol, lhs: Dim, rhs: Dim) -> bool:
    """The same for sizes of one symbol: its first values are tried, bounds tell the rest."""
    end = name.lo + TRIED
    for value in range(name.lo, end if name.hi is None else min(end, name.hi + 1)):
        sizes = [evaluate(size, {name.name: value}) for size in (lhs, rhs)]
        if sizes.count(1) == 1:
            return True
    if name.hi is not None and name.hi < end:
        return False
    beyond = {name.name: symbol(name.name, end, name.hi)}
    return not all(_above_one(substitute(size, beyond)) for size in (lhs, rhs))


def _above_one(size: Dim) -> bool:
    return (lower_bound(size) or 0) > 1


def _meet(lhs: Dim, rhs: Dim) -> bool:
    """Whether sizes of the same symbols are equal and more than 1 somewhere, found by trying: with all symbols alike,
    in what their bounds allow."""
    names = symbols(lhs)
    for size in (*range(2, 130), *(1 << power for power in range(8, 15))):
        values = {item.name: max(item.lo, size if item.hi is None else min(size, item.hi)) for item in names}
        found = evaluate(lhs, values)
        if found > 1 and found == evaluate(rhs, values):
            return True
    return False
