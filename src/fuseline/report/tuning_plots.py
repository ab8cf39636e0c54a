"""Plots of a search as inline SVG: nothing is loaded from elsewhere, and every point says what it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from fuseline.report.tuning_records import TrialRow, TuningReport

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 260, 64, 28, 10
_TICKS = 4
_LOWEST_SHARE = 0.02
_MOST_BARS = 16
_BAR = 18


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        step = (self.high - self.low) / _TICKS
        return [self.low + step * i for i in range(_TICKS + 1)] if step else [self.low]


def history(report: TuningReport) -> str:
    """The time of each trial by that of the default, and the best so far as a line; trials without one lie at the
    top."""
    timed = [row for row in report.trials if row.relative > 0]
    if not timed:
        return ""
    highest = min(max(row.relative for row in timed), 2.0)
    x = _Scale(0, max(len(report.trials) - 1, 1), LEFT, WIDTH - 10)
    y = _scale([min(row.relative for row in timed), highest], HEIGHT - BOTTOM, TOP + 12)
    points = [
        _point(x(row.number), y(min(row.relative, highest)) if row.relative else TOP, row) for row in report.trials
    ]
    lowest, line = float("inf"), list[str]()
    for row in report.trials:
        if row.best and row.relative:
            lowest = row.relative
        if lowest < float("inf"):
            line.append(f"{x(row.number)},{y(min(lowest, highest))}")
    path = f'<polyline class="best" points="{" ".join(line)}"/>'
    return _svg(HEIGHT, [*_axes(x, y, "trial", "time / default", _whole, _ratio), path, *points])


def pareto(report: TuningReport) -> str:
    """Time against memory of the trials that count, the front marked."""
    counted = [row for row in report.trials if row.values]
    if len({(row.relative, row.transient_bytes) for row in counted}) < 2:
        return ""
    x = _scale([row.transient_bytes for row in counted], LEFT, WIDTH - 10)
    y = _scale([row.relative for row in counted], HEIGHT - BOTTOM, TOP)
    front = set(report.front) or set(_front(counted))
    points = [
        _point(x(row.transient_bytes), y(row.relative), row, "front" if row.number in front else "") for row in counted
    ]
    return _svg(HEIGHT, [*_axes(x, y, "transient bytes", "time / default", _bytes, _ratio), *points])


def importances(report: TuningReport) -> str:
    """Bars, the most important knob first."""
    shown = [(name, share) for name, share in report.importance.items() if share >= _LOWEST_SHARE][:_MOST_BARS]
    if not shown:
        return ""
    longest = shown[0][1]
    bars = [
        f'<rect class="bar" x="280" y="{i * _BAR + 2}" width="{round(300 * share / longest, 1)}" height="{_BAR - 5}"/>'
        f'<text x="274" y="{i * _BAR + 13}" class="end">{escape(name)}</text>'
        f'<text x="{round(286 + 300 * share / longest, 1)}" y="{i * _BAR + 13}">{100 * share:.0f} %</text>'
        for i, (name, share) in enumerate(shown)
    ]
    return _svg(_BAR * len(shown) + 4, bars)


def _front(rows: Sequence[TrialRow]) -> list[int]:
    """Numbers of the trials that none beats in both time and memory."""

    def beaten(row: TrialRow) -> bool:
        mine = row.relative, row.transient_bytes
        theirs = [(other.relative, other.transient_bytes) for other in rows]
        return any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in theirs)

    return [row.number for row in rows if not beaten(row)]


def _scale(values: Sequence[float], start: float, end: float) -> _Scale:
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return _Scale(low - room, high + room, start, end)


def _axes(
    x: _Scale, y: _Scale, below: str, beside: str, show_x: Callable[[float], str], show_y: Callable[[float], str]
) -> list[str]:
    lines = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(tick)}" y2="{y(tick)}"/>'
        f'<text class="end" x="{LEFT - 6}" y="{y(tick) + 4}">{show_y(tick)}</text>'
        for tick in y.ticks
    ]
    lines += [f'<text class="middle" x="{x(tick)}" y="{HEIGHT - 12}">{show_x(tick)}</text>' for tick in x.ticks]
    return [
        *lines,
        f'<text class="middle" x="{WIDTH // 2}" y="{HEIGHT}">{below}</text>',
        f'<text class="middle" transform="translate(12 {HEIGHT // 2}) rotate(-90)">{beside}</text>',
    ]


def _point(x: float, y: float, row: TrialRow, extra: str = "") -> str:
    changes = ", ".join(f"{name} = {choice}" for name, choice in row.changes.items()) or "the default"
    measured = f", {row.relative:.4f} of the default" if row.relative else f" {row.code}"
    words = f"trial {row.number}: {row.state}{measured}\n{changes}"
    return f'<circle class="{row.state} {extra}" cx="{x}" cy="{y}" r="3.5"><title>{escape(words)}</title></circle>'


def _svg(height: int, elements: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height + 4}" role="img">{"".join(elements)}</svg>'


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _ratio(value: float) -> str:
    return f"{value:.3f}"


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"
