"""Generics that are written in another way (loops in another order, operands in another, what commutes turned round)
are one value to `cse`; and whatever else is drawn beside them, values stay."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.cse import CsePass
from tests.draws import RNG

SIZE = 3
COMMUTE = ("addf", "mulf", "maximumf", "minimumf")

Tree = int | tuple[str, "Tree", "Tree"]  # a read by its number, or an op on two


@dataclass(frozen=True)
class Drawn:
    """One generic: its reads as the argument and the loops of its dimensions, what it computes, the loops it sums, the
    loops of its result in order."""

    rank: int
    reads: tuple[tuple[int, tuple[int, ...]], ...]
    tree: Tree
    written: tuple[int, ...]

    def text(self, name: str, order: list[int], places: list[int]) -> str:
        """The op with the loop `order[i]` in place of loop `i`, and the reads in the order of `places`."""
        header = ", ".join(f"d{i}" for i in range(self.rank))
        maps = [self.reads[p][1] for p in places] + [self.written]
        shown = ", ".join(f"affine_map<({header}) -> ({', '.join(f'd{order[i]}' for i in m)})>" for m in maps)
        kinds = ["reduction"] * self.rank
        for loop in self.written:
            kinds[order[loop]] = "parallel"
        types = [_type(len(self.reads[p][1])) for p in places]
        result = _type(len(self.written))
        lines = list[str]()
        value = self._lines(self.tree, lines, name)
        if len(self.written) < self.rank:
            lines.append(f"%{name}_s = arith.addf {value}, %{name}_o : f32")
            value = f"%{name}_s"
        kinds_text = str(kinds).replace("'", '"')
        inputs = f"{', '.join(f'%x{self.reads[p][0]}' for p in places)} : {', '.join(types)}"
        arguments = ", ".join([*(f"%{name}_{p}: f32" for p in places), f"%{name}_o: f32"])
        return f"""%{name} = linalg.generic {{indexing_maps = [{shown}], iterator_types = {kinds_text}}}
          ins({inputs}) outs(%e{len(self.written)} : {result}) {{
          ^bb0({arguments}):
            {" ".join(lines)}
            linalg.yield {value} : f32
          }} -> {result}"""

    def _lines(self, tree: Tree, lines: list[str], name: str) -> str:
        if isinstance(tree, int):
            return f"%{name}_{tree}"
        op, left, right = tree
        operands = f"{self._lines(left, lines, name)}, {self._lines(right, lines, name)}"
        lines.append(f"%{name}_v{len(lines)} = arith.{op} {operands} : f32\n")
        return f"%{name}_v{len(lines) - 1}"


def _type(rank: int) -> str:
    return f"tensor<{f'{SIZE}x' * rank}f32>"


def _drawn() -> Drawn:
    rank = int(RNG.integers(1, 4))
    reads = tuple((n, _loops(rank, 2 if n < 2 else rank)) for n in [*RNG.integers(0, 3, int(RNG.integers(1, 4))), 2])
    written = tuple(int(i) for i in RNG.permutation(rank)[: max(1, rank - int(RNG.integers(0, 2)))])
    return Drawn(rank, reads, _tree(len(reads), 3), written)


def _loops(rank: int, dims: int) -> tuple[int, ...]:
    """A loop of `rank` for each dimension, each once where there are enough."""
    return tuple(int(i) for i in RNG.choice(rank, dims, replace=dims > rank))


def _tree(reads: int, depth: int) -> Tree:
    if depth == 0 or RNG.integers(4) == 0:
        return int(RNG.integers(reads))
    return str(RNG.choice([*COMMUTE, "subf"])), _tree(reads, depth - 1), _tree(reads, depth - 1)


def _turned(tree: Tree) -> Tree:
    """The same with the operands of what commutes in another order."""
    if isinstance(tree, int):
        return tree
    op, left, right = tree[0], _turned(tree[1]), _turned(tree[2])
    return (op, right, left) if op in COMMUTE and RNG.integers(2) else (op, left, right)


def _otherwise(one: Drawn, name: str) -> str:
    order, places = RNG.permutation(one.rank).tolist(), RNG.permutation(len(one.reads)).tolist()
    return replace(one, tree=_turned(one.tree)).text(name, order, places)


def _program(ops: list[str], results: list[Drawn]) -> str:
    rank = results[0].rank
    arguments = ", ".join(f"%x{i}: {_type(2 if i < 2 else rank)}" for i in range(3))
    types = [_type(len(one.written)) for one in results]
    names = [f"%{re.match('%([a-z]+)', op)[1]}" for op in ops]  # pyright: ignore[reportOptionalSubscript]
    starts = "\n".join(
        f"%i{n} = tensor.empty() : {_type(n)} %e{n} = linalg.fill ins(%z : f32) outs(%i{n} : {_type(n)}) -> {_type(n)}"
        for n in (1, 2, 3)
    )
    body = "\n".join(ops)
    return f"""func.func @main({arguments}) -> ({", ".join(types)}) {{
      %z = arith.constant 0.0 : f32
      {starts}
      {body}
      return {", ".join(names)} : {", ".join(types)}
    }}"""


def _left(text: str, rank: int) -> int:
    """How many generics `cse` leaves; the values must stay (whole numbers, so that sums are exact in any order)."""
    ctx = new_context()
    module = parse_module(text, ctx)
    feeds = [RNG.integers(-3, 4, (SIZE,) * n).astype(np.float32) for n in (2, 2, rank)]
    wanted = evaluate_module(module, feeds)
    CsePass().apply(ctx, module)
    module.verify()
    for got, value in zip(evaluate_module(module, feeds), wanted, strict=True):
        np.testing.assert_array_equal(got, value)
    return sum(op.name == "linalg.generic" for op in module.walk())


def _as_it_is(one: Drawn, name: str) -> str:
    return one.text(name, list(range(one.rank)), list(range(len(one.reads))))


def test_what_is_written_otherwise_is_one():
    for _ in range(10):
        one = _drawn()
        text = _program([_as_it_is(one, "a"), _otherwise(one, "b")], [one] * 2)
        assert _left(text, one.rank) == 1, text


def test_what_differs_keeps_its_values():
    for _ in range(10):
        one = _drawn()
        other = replace(one, tree=_tree(len(one.reads), 3))
        reads = replace(one, reads=tuple((argument, loops[::-1]) for argument, loops in one.reads))
        ops = [_otherwise(drawn, name) for drawn, name in ((one, "a"), (other, "b"), (reads, "c"), (one, "d"))]
        assert _left(_program(ops, [one] * 4), one.rank) <= 3


def test_a_difference_is_not_turned_round():
    def difference(first: int, second: int) -> Drawn:
        return Drawn(2, ((0, (0, 1)), (1, (0, 1))), ("subf", first, second), (0, 1))

    drawn = [difference(0, 1), difference(1, 0)]
    ops = [_as_it_is(one, name) for one, name in zip(drawn, "ab", strict=True)]
    assert _left(_program(ops, drawn), 2) == 2
