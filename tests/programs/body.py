"""Bodies of generics on small whole numbers, which nothing rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.programs.program import LARGEST, Program, Size, Tensor


@dataclass
class Body:
    """The lines of a body."""

    program: Program
    lines: list[str] = field(default_factory=list[str])

    def op(self, text: str) -> str:
        """A line; answers its result."""
        made = self.program.name("b")
        self.lines.append(f"{made} = {text}")
        return made

    def number(self, value: int, dtype: str) -> str:
        """A constant."""
        return self.op(f"arith.constant {f'{value}.0' if dtype[0] == 'f' else value} : {dtype}")

    def binary(self, kind: str, a: str, b: str, dtype: str) -> str:
        """`add`, `sub`, `mul`, `max` or `min`."""
        floats = {"max": "maximumf", "min": "minimumf"}.get(kind, f"{kind}f")
        return self.op(f"arith.{floats if dtype[0] == 'f' else {'max': 'maxsi', 'min': 'minsi'}.get(kind, f'{kind}i')} "
                       f"{a}, {b} : {dtype}")  # fmt: skip

    def less(self, a: str, b: str, dtype: str) -> str:
        """Whether `a < b`."""
        return self.op(f"arith.{'cmpf olt' if dtype[0] == 'f' else 'cmpi slt'}, {a}, {b} : {dtype}")

    def select(self, condition: str, a: str, b: str, dtype: str) -> str:
        """`a` if it holds, `b` else."""
        return self.op(f"arith.select {condition}, {a}, {b} : {dtype}")

    def clamped(self, value: str, dtype: str) -> str:
        """Between -LARGEST and LARGEST."""
        low, high = self.number(-LARGEST, dtype), self.number(LARGEST, dtype)
        return self.binary("min", self.binary("max", value, low, dtype), high, dtype)

    def index(self, loop: int) -> str:
        """The place along a loop, of type i64."""
        return self.op(f"arith.index_cast {self.op(f'linalg.index {loop} : index')} : index to i64")

    def cast(self, value: str, source: str, target: str) -> str:
        """A whole number of another type."""
        if source == target:
            return value
        if source[0] == target[0]:
            wider = int(target[1:]) > int(source[1:])
            kind = ("extf" if wider else "truncf") if source[0] == "f" else ("extsi" if wider else "trunci")
        else:
            kind = "sitofp" if target[0] == "f" else "fptosi"
        return self.op(f"arith.{kind} {value} : {source} to {target}")

    def expression(self, arguments: Sequence[tuple[str, str]], dtype: str, rank: int) -> str:
        """A random one of the arguments `(name, type)` and places."""
        rng, terms = self.program.rng, [self.cast(name, source, dtype) for name, source in arguments]
        if rank and self.program.chance(0.25):
            place = self.index(int(rng.integers(rank)))
            terms.append(self.clamped(self.cast(place, "i64", dtype), dtype))
        for _ in range(int(rng.integers(0, 3))):
            terms.append(self.number(int(rng.integers(-3, 4)), dtype))
        value = terms[0]
        for term in terms[1:]:
            kind = self.program.any(["add", "sub", "max", "min", "mul", "select"])
            if kind == "select":
                value = self.select(self.less(value, term, dtype), term, value, dtype)
            else:
                value = self.binary(kind, value, term, dtype)
        return self.clamped(value, dtype)


def generic(
    p: Program, inputs: Sequence[tuple[Tensor, str]], outputs: Sequence[tuple[Tensor, str]], kinds: Sequence[str],
    body: Callable[[Body, list[str], list[str]], Sequence[str]], extents: Sequence[Size],
) -> list[Tensor]:  # fmt: skip
    """A `linalg.generic`; a map is the text of its results. The loops are `d0, d1, ..`."""
    over = ", ".join(f"d{i}" for i in range(len(kinds)))
    maps = ", ".join(f"affine_map<({over}) -> ({text})>" for _, text in (*inputs, *outputs))
    arguments = [p.name("x") for _ in (*inputs, *outputs)]
    written = Body(p)
    results = body(written, arguments[: len(inputs)], arguments[len(inputs) :])
    made, types = p.name("g"), [tensor.type for tensor, _ in outputs]
    names = [made] if len(outputs) == 1 else [f"{made}#{i}" for i in range(len(outputs))]
    declared = ", ".join(
        f"{name}: {tensor.dtype}" for name, (tensor, _) in zip(arguments, (*inputs, *outputs), strict=True)
    )
    iterators = ", ".join(f'"{kind}"' for kind in kinds)
    ins = f"ins({', '.join(t.name for t, _ in inputs)} : {', '.join(t.type for t, _ in inputs)}) " if inputs else ""
    p.say(
        f"{made}{f':{len(outputs)}' if len(outputs) > 1 else ''} = linalg.generic {{indexing_maps = [{maps}], "
        f"iterator_types = [{iterators}]}} {ins}"
        f"outs({', '.join(t.name for t, _ in outputs)} : {', '.join(types)}) {{"
    )
    p.say(f"^bb0({declared}):")
    p.lines += [f"  {line}" for line in written.lines]
    p.say(f"  linalg.yield {', '.join(results)} : {', '.join(t.dtype for t, _ in outputs)}")
    p.say(f"}} -> {types[0] if len(types) == 1 else '(' + ', '.join(types) + ')'}")
    return [p.add(Tensor(name, t.dims, t.dtype)) for name, (t, _) in zip(names, outputs, strict=True)]
