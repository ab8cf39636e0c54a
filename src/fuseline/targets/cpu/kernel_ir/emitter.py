"""Where operations are placed: scopes, sharing of equal pure operations, and hoisting of index arithmetic.

No IR pass runs after us, so the builder itself keeps code tidy: an operation equal to one already visible is that one,
and scalar arithmetic goes to the outermost block where its operands exist. `x + constant` is the exception: it stays
where it is used, since it folds into the displacement of a memory operand and would otherwise hold a register across
the loop.
"""

from __future__ import annotations

from math import inf
from typing import Any

from fuseline.targets.cpu.kernel_ir.types import BITS, I64, Block, Loop, Operand, Type, Value, When, While, depth_of

HOISTED = frozenset(
    "mul sub add min max compare select cast bitcast splat iota mask and or xor select_address fdiv fma neg abs sqrt "
    "floor ceil rint trunc".split()
)


class TooMuchCodeError(Exception):
    """A kernel under construction has passed its budget of code; whoever builds it tries a smaller form."""


class Registers(dict[Type, int]):
    """How many registers of `bits` a value of a type takes: as many instructions does an operation on it become."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits

    def __missing__(self, type: Type) -> int:
        self[type] = max(1, -(-type.lanes * BITS.get(type.dtype, 64) // self.bits))
        return self[type]


class Emitter:
    """The scope stack of a kernel under construction.

    Args:
        register_bits: of the machine's vector registers.
        budget: instructions, about, beyond which `TooMuchCodeError` is raised.
    """

    keeps_loops = False
    """Whether loops of one round or none, and divisions by 1, stay what they are: in code that is to be shared they are
    another number of rounds elsewhere."""

    keeps_edges = False
    """Whether every row of a tile that meets padding is checked at both sides, also where it cannot leave at one of
    them: in code that is to be shared it does so elsewhere."""

    def __init__(self, register_bits: int = 512, budget: float = inf) -> None:
        self.code, self.budget = 0, budget
        self._registers = Registers(register_bits)
        self._blocks: list[Block] = [Block()]
        self._seen: list[dict[Any, Any]] = [{}]
        self._constants: dict[Any, Value] = {}
        self._numbers: set[Value] = set()
        self._told_by_run: dict[Value, bool] = {}
        self._count = 0

    @property
    def depth(self) -> int:
        """Nesting of the current block; 0 is the kernel's body."""
        return len(self._blocks) - 1

    @property
    def block(self) -> Block:
        """The current block."""
        return self._blocks[-1]

    def _fresh(self, op: str, type: Type, args: tuple[Any, ...] = (), attr: Any = None, depth: int = 0) -> Value:
        self._count += 1
        self.code += self._registers[type]
        if self.code > self.budget:
            raise TooMuchCodeError
        return Value(op, type, args, attr, self._count, depth)

    def effect(self, op: str, type: Type, args: tuple[Any, ...], attr: Any = None) -> Value:
        """An operation that reads or writes memory: placed here, never shared."""
        value = self._fresh(op, type, args, attr, self.depth)
        self._blocks[-1].ops.append(value)
        return value

    def pure(self, op: str, type: Type, args: tuple[Any, ...], attr: Any = None, *, safe: bool = True) -> Value:
        """An operation without effects: shared with an equal one, hoisted when it is index arithmetic and cannot trap
        (`safe`)."""
        key = (op, type, args, attr)
        lowest = max(map(depth_of, args), default=0)
        if safe and op in HOISTED and _is_index_work(op, type, args):
            return self._place(key, lowest)
        for depth in range(self.depth, lowest - 1, -1):
            found = self._seen[depth].get(key)
            if found is not None:
                return found
        return self._place(key, self.depth)

    def _place(self, key: tuple[str, Type, tuple[Any, ...], Any], depth: int) -> Value:
        found = self._seen[depth].get(key)
        if found is None:
            op, type, args, attr = key
            found = self._fresh(op, type, args, attr, depth)
            self._seen[depth][key] = found
            self._blocks[depth].ops.append(found)
        return found

    def recall(self, key: Any) -> Any:
        """What was remembered under `key` in this block or an enclosing one, else None."""
        for seen in reversed(self._seen):
            found = seen.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Any, value: Any) -> None:
        """Keep `value` under `key` until the current block closes."""
        self._seen[-1][key] = value

    def open(self, block: Block) -> None:
        """Start to fill `block`, nested in the current one."""
        self._blocks.append(block)
        self._seen.append({})

    def close(self) -> None:
        """Return to the enclosing block."""
        self._blocks.pop()
        self._seen.pop()

    def append(self, op: Loop | While | When) -> None:
        """Add a finished loop or branch to the current block."""
        self._blocks[-1].ops.append(op)

    def fresh_number(self) -> int:
        """A number no value has."""
        self._count += 1
        return self._count


def _is_index_work(op: str, type: Type, args: tuple[Any, ...]) -> bool:
    if op in ("splat", "mask", "iota"):
        return True
    if type.lanes != 1:
        return False
    return not (op == "add" and isinstance(args[1], int))


def split(operand: Operand) -> tuple[Operand, int]:
    """`operand` as `(base, constant)` with `base` 0 or free of an outer constant term."""
    if isinstance(operand, int):
        return 0, operand
    if operand.op == "add" and operand.type == I64 and isinstance(operand.args[1], int):
        return operand.args[0], operand.args[1]
    return operand, 0
