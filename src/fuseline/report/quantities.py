"""Numbers as people read them in tables.

>>> quantity(8_951_712)
'8.95 M'
>>> quantity(384)
'384'
>>> seconds(0.0000163)
'16.3 us'
"""

from __future__ import annotations

_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def quantity(value: float) -> str:
    """A count of bytes, flops or elements with three digits and a decimal prefix; exact below ten thousand."""
    if abs(value) < 10_000:
        return f"{value:g}"
    scale, prefix = next((step for step in _STEPS if abs(value) >= step[0]), (1.0, ""))
    return f"{value / scale:.3g} {prefix}"


def seconds(value: float) -> str:
    """A duration in the unit that leaves one to three digits before the point."""
    scale, unit = next((step for step in _TIMES if abs(value) >= step[0]), _TIMES[-1])
    return f"{value / scale:.3g} {unit}"


def plural(count: int, noun: str) -> str:
    """`3 dispatches`, `1 dispatch`."""
    ending = "es" if noun.endswith(("ch", "s", "x")) else "s"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{ending}"


LONG = 100
"""Letters of a name that texts show at the most; JSON has all."""


def short_name(name: str, most: int = LONG) -> str:
    """The end of a name that is too long: what names of a model begin with is often the same for all.

    >>> short_name("/encoder/layer.0/MatMul", 12), short_name("/MatMul", 12)
    ('..r.0/MatMul', '/MatMul')
    """
    return name if len(name) <= most else f"..{name[2 - most :]}"


def shortened(names: tuple[str, ...] | list[str], limit: int = 4) -> str:
    """The first names of a list and how many more there are."""
    shown = ", ".join(map(short_name, names[:limit]))
    return shown if len(names) <= limit else f"{shown}, +{len(names) - limit}"
