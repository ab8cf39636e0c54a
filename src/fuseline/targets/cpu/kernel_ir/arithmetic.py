"""Constants and arithmetic of the kernel IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard

from fuseline.targets.cpu.kernel_ir.control import Control
from fuseline.targets.cpu.kernel_ir.emitter import split
from fuseline.targets.cpu.kernel_ir.types import I1, I64, Operand, Type, Value, type_of

Number: TypeAlias = Value | int | float

_FOLDS: dict[str, Callable[[int, int], int]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: a % 2**64 < b % 2**64,
    "ule": lambda a, b: a % 2**64 <= b % 2**64,
    "ugt": lambda a, b: a % 2**64 > b % 2**64,
    "uge": lambda a, b: a % 2**64 >= b % 2**64,
}
_INT_PREDICATES = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


class Arithmetic(Control):
    """Operations on scalars and vectors. Python ints fold; a scalar meets a vector as its splat; a Python number takes
    the other's type."""

    def const(self, x: float | int | Sequence[float | int], dtype: str, lanes: int = 1) -> Value:
        """A constant; a sequence gives one number per lane."""
        type = Type(dtype, lanes)
        of = float if type.is_float else int
        number = tuple(of(e) for e in x) if isinstance(x, Sequence) else of(x)
        key = (type, repr(number))
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = Value("const", type, (), number, 0, 0)
        return found

    def as_value(self, x: Number, like: Type = I64) -> Value:
        """`x` as a value of type `like`: numbers become constants, scalars splats."""
        if not isinstance(x, Value):
            return self.const(x, like.dtype, like.lanes)
        if x.type.lanes == 1 and like.lanes != 1:
            return self.splat(x, like.lanes)
        return x

    def _pair(self, a: Number, b: Number) -> tuple[Value, Value]:
        like = a.type if isinstance(a, Value) else I64
        if isinstance(b, Value) and (not isinstance(a, Value) or b.type.lanes > like.lanes):
            like = b.type
        a, b = self.as_value(a, like), self.as_value(b, like)
        if a.type != b.type:
            raise TypeError(f"operands differ in type: {a.type} and {b.type}")
        return a, b

    def _binary(self, op: str, a: Number, b: Number, *, safe: bool = True) -> Value:
        x, y = self._pair(a, b)
        if x.type == I64:  # keep Python ints in index arithmetic: shorter text, and the checks read them
            return self.pure(op, I64, (_plain(x), _plain(y)), safe=safe)
        return self.pure(op, x.type, (x, y), safe=safe)

    # index arithmetic: i64 scalars ------------------------------------------------------------------------------------

    def add(self, a: Number, b: Number) -> Any:
        """`a + b`."""
        if not (_is_index(a) and _is_index(b)):
            return self._binary("add", a, b)
        (base_a, c), (base_b, d) = split(a), split(b)
        return self._plus(self._sum(base_a, base_b), c + d)

    def _sum(self, a: Operand, b: Operand) -> Operand:
        """Outer terms first, so that an invariant prefix is shared and hoisted, and a sum that moves with an inner loop
        takes a term that does not into its own prefix: one addition is left inside (128x768x2304 in tiles of 6x16: .96
        of the time). Not so distances that the run tells: the prefixes of several rows would each take a register."""
        if isinstance(a, int):
            return b
        if isinstance(b, int):
            return a
        if b.depth < a.depth:
            a, b = b, a
        prefix = _prefix(b)
        if prefix is None or max(a.depth, prefix.depth) >= b.depth or any(map(self._is_told_by_run, (a, prefix))):
            return self.pure("add", I64, (a, b))
        return self.pure("add", I64, (self._sum(a, prefix), b.args[1]))

    def _is_told_by_run(self, x: Value) -> bool:
        """Whether a distance is a size, or a product or sum with one."""
        found = self._told_by_run.get(x)
        if found is None:
            terms = [term for term in x.args if isinstance(term, Value)]
            found = self._told_by_run[x] = x.op == "size" or any(map(self._is_told_by_run, terms))
        return found

    def _plus(self, base: Operand, constant: int) -> Operand:
        if isinstance(base, int):
            return base + constant
        return base if constant == 0 else self.pure("add", I64, (base, constant))

    def sub(self, a: Number, b: Number) -> Any:
        """`a - b`."""
        if not (_is_index(a) and _is_index(b)):
            return self._binary("sub", a, b)
        (base_a, c), (base_b, d) = split(a), split(b)
        if base_a is base_b:
            return c - d
        return self._plus(base_a if isinstance(base_b, int) else self.pure("sub", I64, (base_a, base_b)), c - d)

    def mul(self, a: Number, b: Number) -> Any:
        """`a * b`."""
        if not (_is_index(a) and _is_index(b)):
            return self._binary("mul", a, b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        return self._times(a, b) if isinstance(b, int) else self.pure("mul", I64, (a, b))

    def _times(self, a: Operand, factor: int) -> Operand:
        base, constant = split(a)
        if isinstance(base, int) or factor == 0:
            return constant * factor if factor else 0
        if factor == 1:
            return a
        if base.op == "mul" and isinstance(base.args[1], int):
            base, inner = base.args[0], base.args[1]
            return self._plus(self.pure("mul", I64, (base, inner * factor)), constant * factor)
        return self._plus(self.pure("mul", I64, (base, factor)), constant * factor)

    def div(self, a: Number, b: Number) -> Any:
        """`a / b`: of floats exact, of integers floor for operands that are not negative. An integer divisor must not
        be 0."""
        if type_of_number(a).is_float or type_of_number(b).is_float:
            return self._binary("fdiv", a, b)
        if isinstance(b, int) and _is_index(a):
            if isinstance(a, int):
                return a // b
            if b == 1 and not self.keeps_loops:
                return a
        return self._binary("udiv", a, b, safe=isinstance(b, int))

    def reciprocal(self, x: Value) -> Value:
        """`1 / x` of a float, computed outside the loops that `x` does not change in."""
        return self._place(("fdiv", x.type, (self.const(1.0, *x.type), x), None), x.depth)

    def rem(self, a: Number, b: Number) -> Any:
        """`a mod b` for integers that are not negative. The divisor must not be 0."""
        if isinstance(b, int) and _is_index(a):
            if isinstance(a, int):
                return a % b
            if b == 1 and not self.keeps_loops:
                return 0
        return self._binary("urem", a, b, safe=isinstance(b, int))

    def sdiv(self, a: Number, b: Number) -> Value:
        """Signed integer division, rounded towards zero; the caller keeps a divisor of 0 and the overflow of -1
        away."""
        return self._binary("sdiv", a, b, safe=False)

    def srem(self, a: Number, b: Number) -> Value:
        """The rest of `sdiv`, with the sign of `a`; the same precondition."""
        return self._binary("srem", a, b, safe=False)

    def ceil_div(self, a: Operand, b: int) -> Any:
        """`ceil(a / b)` of index values that are not negative."""
        return self.div(self.add(a, b - 1), b)

    def min(self, a: Number, b: Number) -> Any:
        """The smaller; of floats `b` when either is NaN (one instruction on x86)."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return a if a is b else self._binary("min", a, b)

    def max(self, a: Number, b: Number) -> Any:
        """The larger; of floats `b` when either is NaN (one instruction on x86)."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return a if a is b else self._binary("max", a, b)

    def umin(self, a: Number, b: Number) -> Value:
        """The smaller of unsigned integers."""
        return self._binary("umin", a, b)

    def umax(self, a: Number, b: Number) -> Value:
        """The larger of unsigned integers."""
        return self._binary("umax", a, b)

    def minimum(self, a: Number, b: Number) -> Value:
        """The smaller float; NaN when either is NaN."""
        return self._extreme(self.min, a, b)

    def maximum(self, a: Number, b: Number) -> Value:
        """The larger float; NaN when either is NaN."""
        return self._extreme(self.max, a, b)

    def _extreme(self, pick: Callable[[Number, Number], Any], a: Number, b: Number) -> Value:
        x, y = self._pair(a, b)
        if self.is_number(x):
            return pick(x, y)
        if self.is_number(y):
            return pick(y, x)
        return self.select(self.compare("uno", x, x), x, pick(x, y))

    def is_number(self, x: Value) -> bool:
        """Whether the builder knows that no lane of `x` is NaN: of a constant it does, and of what `load_once` gave."""
        if x.op == "const":
            return all(number == number for number in (x.attr if isinstance(x.attr, tuple) else (x.attr,)))
        return (x.args[0] if x.op == "splat" else x) in self._numbers

    # floats -----------------------------------------------------------------------------------------------------------

    def fma(self, a: Number, b: Number, c: Number) -> Value:
        """`a * b + c` rounded once (twice on a machine without FMA)."""
        x, y = self._pair(a, b)
        x, z = self._pair(x, c)
        x, y = self._pair(x, y)
        return self.pure("fma", x.type, (x, y, z))

    def _unary(self, op: str, a: Value) -> Value:
        return self.pure(op, a.type, (a,))

    def neg(self, a: Value) -> Value:
        """`-a`."""
        return self._unary("neg", a) if a.type.is_float else self.sub(self.const(0, *a.type), a)

    def abs(self, a: Value) -> Value:
        """`|a|`; of the lowest integer itself."""
        return self._unary("abs", a)

    def sqrt(self, a: Value) -> Value:
        """The square root, rounded exactly."""
        return self._unary("sqrt", a)

    def floor(self, a: Value) -> Value:
        """The greatest integer not above `a`, as a float."""
        return self._unary("floor", a)

    def ceil(self, a: Value) -> Value:
        """The least integer not below `a`, as a float."""
        return self._unary("ceil", a)

    def rint(self, a: Value) -> Value:
        """`a` rounded to an integer, ties to even, as a float."""
        return self._unary("rint", a)

    def nearest(self, a: Value) -> Value:
        """An f32 rounded to an integer, ties to even, as i32; one that is none is anything."""
        return self.pure("nearest", Type("i32", a.type.lanes), (a,))

    def trunc(self, a: Value) -> Value:
        """`a` rounded towards zero, as a float."""
        return self._unary("trunc", a)

    # choice and conversion --------------------------------------------------------------------------------------------

    def compare(self, predicate: str, a: Number, b: Number) -> Value:
        """i1 per lane. Predicates: eq ne lt le gt ge (signed, ordered; ne holds for NaN), LLVM's ult.., olt.., uno,
        ord."""
        if isinstance(a, int) and isinstance(b, int):
            return self.const(int(_FOLDS[_INT_PREDICATES.get(predicate, predicate)](a, b)), "i1")
        x, y = self._pair(a, b)
        names = _FLOAT_PREDICATES if x.type.is_float else _INT_PREDICATES
        args: tuple[Any, ...] = (_plain(x), _plain(y)) if x.type == I64 else (x, y)
        return self.pure("compare", Type("i1", x.type.lanes), args, names.get(predicate, predicate))

    def select(self, condition: Value, a: Number, b: Number) -> Any:
        """`a` where `condition` holds, else `b`; a scalar condition chooses whole vectors."""
        if a is b:
            return a
        if condition.op == "const" and condition.type == I1:
            return a if condition.attr else b
        x, y = self._pair(a, b)
        if condition.type.lanes > x.type.lanes:
            x, y = self.splat(x, condition.type.lanes), self.splat(y, condition.type.lanes)
        args = (condition, _plain(x), _plain(y)) if x.type == I64 else (condition, x, y)
        return self.pure("select", x.type, args)

    def splat(self, scalar: Value | int, lanes: int) -> Value:
        """`scalar` in every lane."""
        if isinstance(scalar, int):
            return self.const(scalar, "i64", lanes)
        if lanes == scalar.type.lanes:
            return scalar
        if scalar.op == "const":
            return self.const(scalar.attr, scalar.type.dtype, lanes)
        return self.pure("splat", Type(scalar.type.dtype, lanes), (scalar,))


def type_of_number(x: Number) -> Type:
    """The type of an operand; a Python float is f32, an int i64."""
    return Type("f32") if isinstance(x, float) else type_of(x)


def _is_index(x: Number) -> TypeGuard[Operand]:
    return isinstance(x, int) or (isinstance(x, Value) and x.type == I64)


def _prefix(x: Value) -> Value | None:
    """The first term of a sum of two values."""
    if x.op != "add" or not all(isinstance(term, Value) for term in x.args):
        return None
    return x.args[0]


def _plain(x: Value) -> Operand:
    return x.attr if x.op == "const" else x
