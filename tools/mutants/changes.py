"""Mutants: small changes to functions of the compiler. mutmut makes them; here each gets a name, its lines and its
diff."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import libcst
from mutmut.mutation.file_mutation import Mutation, create_mutations


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    `file` is relative to the project, `number` counts the changes of the file, `function` is the qualified name.
    """

    file: str
    number: int
    function: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """`module.function:number`, without the folder `src`."""
        return f"{module_name(self.file)}.{self.function}:{self.number}"

    @cached_property
    def _hunks(self) -> list[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
        old, new = self.before.splitlines(), self.after.splitlines()
        codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(i, j, tuple(old[i:j]), tuple(new[k:m])) for tag, i, j, k, m in codes if tag != "equal"]

    @property
    def removed(self) -> str:
        """The lines it takes away, stripped."""
        return "\n".join(line.strip() for _, _, old, _ in self._hunks for line in old)

    @property
    def added(self) -> str:
        """The lines it puts there, stripped."""
        return "\n".join(line.strip() for _, _, _, new in self._hunks for line in new)

    @property
    def diff(self) -> str:
        """What it changes, with the place, to be read."""
        lines = [f"{self.file}:{self._hunks[0][0] + 1}  {self.name}"]
        for _, _, old, new in self._hunks:
            lines += [f"  - {line.strip()}" for line in old] + [f"  + {line.strip()}" for line in new]
        return "\n".join(lines)

    def lines(self) -> set[int]:
        """The lines of the unchanged file whose statements it changes, from 1: a test that runs none of them cannot
        notice."""
        touched = {line for start, stop, _, _ in self._hunks for line in range(start + 1, max(stop, start + 1) + 1)}
        found = set[int]()
        for line in touched:
            spans = [span for span in _statement_lines(self.before) if line in span]
            found.update(min(spans, key=len) if spans else (line,))
        return found


def module_name(file: str) -> str:
    """The module a file is imported as.

    >>> module_name("src/fuseline/analysis/walks.py")
    'fuseline.analysis.walks'
    """
    return file.removeprefix("src/").removesuffix(".py").replace("/", ".")


def mutants(root: Path, file: str, numbers: Collection[int]) -> list[Mutant]:
    """The mutants of `file` with these numbers; see `count`."""
    text, module, changes = _changes(root, file)
    return [
        Mutant(file, number, changes[number][0], text, _changed(module, changes[number][1]))
        for number in sorted(numbers)
    ]


def count(root: Path, file: str) -> int:
    """How many mutants the functions and methods of `file` have; changes outside of functions are left out."""
    return len(_changes(root, file)[2])


def _changes(root: Path, file: str) -> tuple[str, libcst.Module, list[tuple[str, Mutation]]]:
    text = (root / file).read_text(encoding="utf-8")
    module, found, _, _ = create_mutations(file, text)
    names = _qualified_names(module)
    return (
        text,
        module,
        [(names[place], change) for change in found if (place := change.contained_by_top_level_function) in names],
    )


def _changed(module: libcst.Module, change: Mutation) -> str:
    changed = module.deep_replace(change.original_node, change.mutated_node)
    assert isinstance(changed, libcst.Module)
    return changed.code


def _qualified_names(module: libcst.Module) -> dict[libcst.CSTNode | None, str]:
    found: dict[libcst.CSTNode | None, str] = {}
    for node in module.body:
        if isinstance(node, libcst.FunctionDef):
            found[node] = node.name.value
        elif isinstance(node, libcst.ClassDef):
            found |= {
                inner: f"{node.name.value}.{inner.name.value}"
                for inner in node.body.body
                if isinstance(inner, libcst.FunctionDef)
            }
    return found


@lru_cache(maxsize=64)
def _statement_lines(text: str) -> list[range]:
    """The lines of each statement; of a compound one its head only."""
    return [_own_lines(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]


def _own_lines(node: ast.stmt) -> range:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    if isinstance(
        node, ast.FunctionDef
    ):  # its head runs on import, before any test does: who runs what follows it may notice
        return range(node.lineno, _first_run(node).lineno + 1)
    first = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
    return range(node.lineno, max(first, node.lineno + 1))


def _first_run(function: ast.FunctionDef) -> ast.stmt:
    """The first statement of a function that does something: no docstring, where another one follows."""
    first, *rest = function.body
    return rest[0] if rest and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else first
