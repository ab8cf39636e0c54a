"""Concats inside kernels: parts of run-time sizes, empty ones among them, many of them, concats of concats; and code
linear in the parts."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm

from .generics import empty, function, generic, tensor
from .texts import build, check, parse

SQUARE = ("%s = arith.mulf %i0, %i0 : f32", [("%s", "f32")])


def squared_concat(count: int, rows: tuple[int, ...] = (), nested: bool = False) -> str:
    """The squares of a concat of `count` arguments of lengths `n0, n1, ..`, along the innermost dimension; `nested`:
    each part a concat of two."""
    names = [f"n{i}" for i in range(count)]
    total = tensor((*rows, "n"))
    lines = [
        f"%t{i} = arith.addi %{f't{i - 1}' if i else 'zero'}, %{'two_' * nested}{name} : index"
        for i, name in enumerate(names)
    ]
    if nested:
        lines = [f"%two_{name} = arith.addi %{name}, %{name} : index" for name in names] + lines
    part = tensor((*rows, "m"))
    parts = [f"%x{i}" for i in range(count)]
    if nested:
        lines += [
            f"%c{i} = tensor.concat dim({len(rows)}) %x{i}, %x{i} : ({part}, {part}) -> {part}" for i in range(count)
        ]
        parts = [f"%c{i}" for i in range(count)]
    lines.append(f"%c = tensor.concat dim({len(rows)}) {', '.join(parts)} : ({', '.join([part] * count)}) -> {total}")
    lines.append(empty("e", (*rows, f"t{count - 1}")))
    axes = ", ".join(f"d{i}" for i in range(len(rows) + 1))
    lines.append(generic("%y", [("%c", total)], [("%e", total)], [axes, axes], "p" * (len(rows) + 1), *SQUARE))
    body = "\n".join(["%zero = arith.constant 0 : index", *lines])
    text = function([(f"x{i}", (*rows, name), "f32") for i, name in enumerate(names)], names, body, [("%y", total)])
    for name in names:
        text = text.replace(f'fuseline.name = "{name}"', f'fuseline.name = "{name}", fuseline.bounds = "0.."')
    return text


@pytest.mark.parametrize("rows", [(), (3,)])
@pytest.mark.parametrize("count", [2, 3, 6, 7, 13])
def test_parts_of_any_size(count: int, rows: tuple[int, ...]) -> None:
    """Long and short parts, and parts without elements, first, last and in between."""
    rng = np.random.default_rng(count)
    for seed in range(2):
        lengths = [int(n) for n in rng.choice([0, 1, 2, 5, 8, 19, 40], count)]
        lengths[seed % count] += 1
        check(squared_concat(count, rows), sizes={f"n{i}": n for i, n in enumerate(lengths)}, seed=seed)


@pytest.mark.parametrize("count", [3, 9])
def test_concats_of_concats(count: int) -> None:
    check(squared_concat(count, nested=True), sizes={f"n{i}": (7 * i + 3) % 12 for i in range(count)})


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_code_is_linear_in_the_parts(isa: str, nested: bool) -> None:
    """Each further part adds about as much text as the one before."""
    lengths = [_text_length(squared_concat(count, nested=nested), isa) for count in (8, 16, 32, 64)]
    assert lengths[2] - lengths[1] < 3 * (lengths[1] - lengths[0])
    assert lengths[3] - lengths[2] < 3 * (lengths[2] - lengths[1])


def _text_length(text: str, isa: str) -> int:
    kernel = build(parse(text), machine(isa)).kernel
    return len(print_llvm([kernel], machine(isa)))
