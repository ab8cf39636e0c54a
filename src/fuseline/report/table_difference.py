"""What changed between two tables of models: rows by name, figures by column, models that came, went, fail now or work
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from fuseline.report.markdown import markdown_table
from fuseline.report.model_table import COLUMNS, SECONDS, ModelRow, cell
from fuseline.report.regressions import Condition, figure, regression

_COMPARED = {column: key for column, key in COLUMNS.items() if column != SECONDS}


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """A model whose row differs: the figures that do, and in words what happened to the model itself (`appeared`,
    `appeared, fails: E0301`, `vanished`, `fails now: E0301`, `works again`), empty where it compiled both times."""

    model: str
    figures: dict[str, tuple[float | None, float | None]] = {}
    state: str = ""


Pair = tuple[ModelRow | None, ModelRow | None]


def paired(before: Sequence[ModelRow], after: Sequence[ModelRow]) -> list[Pair]:
    """The rows of both tables by name; where a name is on one side only, by the name without its suffix (a model
    against its artifact), if no other model is called so."""
    names = {row.model: row for row in after}
    stems = {stem: rows[0] for stem, rows in _by_stem(after).items() if len(rows) == 1}
    alone = {stem for stem, rows in _by_stem(before).items() if len(rows) == 1}
    found: list[Pair] = []
    for row in before:
        stem = _stem(row)
        found.append((row, names.get(row.model) or (stems.get(stem) if stem in alone else None)))
    taken = {match.model for _, match in found if match is not None}
    return [*found, *((None, row) for row in after if row.model not in taken)]


def _stem(row: ModelRow) -> str:
    return str(PurePosixPath(row.model).with_suffix("")) if PurePosixPath(row.model).suffix else row.model


def _by_stem(rows: Sequence[ModelRow]) -> Mapping[str, list[ModelRow]]:
    found: dict[str, list[ModelRow]] = {}
    for row in rows:
        found.setdefault(_stem(row), []).append(row)
    return found


def row_changes(pairs: Sequence[Pair]) -> list[RowChange]:
    """The rows that differ, in the order of the first table; compile times never agree and are not compared."""
    changes = (_change(old, new) for old, new in pairs)
    return [change for change in changes if change is not None]


def _change(old: ModelRow | None, new: ModelRow | None) -> RowChange | None:
    if old is None or new is None:
        return RowChange(model=old.model, state="vanished") if old is not None else _appeared(new)
    if old.record is None or new.record is None:
        state = _state(old.error_code, new.error_code)
        return RowChange(model=old.model, state=state) if state else None
    values = {column: (figure(old.record, key), figure(new.record, key)) for column, key in _COMPARED.items()}
    figures = {column: pair for column, pair in values.items() if pair[0] != pair[1]}
    return RowChange(model=old.model, figures=figures) if figures else None


def _appeared(new: ModelRow | None) -> RowChange | None:
    if new is None:
        return None
    return RowChange(model=new.model, state="appeared" + (f", fails: {new.error_code}" if new.record is None else ""))


def _state(old: str, new: str) -> str:
    if old == new:
        return ""
    return f"fails now: {new}" + (f" (before: {old})" if old else "") if new else f"works again (before: {old})"


def table_failures(conditions: Sequence[Condition], pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """How each condition was met, by its text: `mlp.onnx dispatches: 3 -> 4`. A model that fails now and did
    not before, or was not there, has no figures, so it meets every condition. Raises E0501 where a table lacks a
    statistic."""
    changed = [change.model for change in row_changes(pairs)]
    found = {
        wanted.text: [f"{name} differs" for name in changed] if wanted.any else list(_met(wanted, pairs))
        for wanted in conditions
    }
    return {text: lines for text, lines in found.items() if lines}


def _met(wanted: Condition, pairs: Sequence[Pair]) -> Iterator[str]:
    for old, new in pairs:
        if new is None:
            continue
        if new.record is None and (old is None or old.record is not None):
            yield f"{new.model} fails now: {new.error_code}"
        if old is not None and old.record is not None and new.record is not None:
            change = regression(wanted, old.record, new.record)
            if change is not None:
                yield f"{old.model} {change}"


def change_lines(changes: Sequence[RowChange]) -> list[str]:
    """The changes as text: a line per model."""
    return [f"{change.model}: {change.state or ', '.join(_figures(change))}" for change in changes]


def _figures(change: RowChange) -> Iterator[str]:
    return (f"{column} {cell(column, old)} -> {cell(column, new)}" for column, (old, new) in change.figures.items())


def change_markdown(changes: Sequence[RowChange]) -> list[str]:
    """The changes as a table in Markdown, with the columns in which any model differs."""
    columns = [column for column in _COMPARED if any(column in change.figures for change in changes)]
    states = ["state"] if any(change.state for change in changes) else []
    rows = [
        [
            change.model,
            *([change.state] if states else []),
            *(_cell(change, column) for column in columns),
        ]
        for change in changes
    ]
    return markdown_table(["model", *states, *columns], rows)


def _cell(change: RowChange, column: str) -> str:
    if column not in change.figures:
        return ""
    old, new = change.figures[column]
    return f"{cell(column, old)} -> {cell(column, new)}"
