"""A graph while it grows: every node is run when it is added, on every setting of the symbolic sizes, and left out
where that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.evaluate import NodeRunner, Rejected, tensor_of
from tests.fuzz.exclusions import exclude
from tests.fuzz.lost_digits import require_digits
from tests.fuzz.tensors import F32, F64, I64, Array, Shape, Value, is_float, onnx_type, random_array

ELEMENT_LIMIT = 4000
RANK_LIMIT = 6
MAGNITUDE_LIMIT = 2000.0
"""Values beyond it are left out, so that what follows stays well-conditioned and 16-bit floats do not overflow."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The sizes of the symbols, one per setting."""

    symbols: dict[str, tuple[int, ...]]
    count: int


@dataclass(slots=True)
class Step:
    """A node and what runs it; `inputs` in the order that the runner takes them."""

    node: onnx.NodeProto
    runner: NodeRunner
    inputs: list[str]
    outputs: list[str]


class Graph:
    """Values, nodes and weights of a model in the making.

    Args:
        opset: of the default domain.
        setting: symbols and their sizes.
        wild: whether values may be infinite, NaN or huge.
        dtypes: element types of new inputs, the likely ones repeated.
        elements: the most of a value.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        opset: int,
        setting: Setting,
        wild: bool,
        dtypes: Sequence[np.dtype[Any]],
        *,
        elements: int = ELEMENT_LIMIT,
    ) -> None:
        self.rng, self.opset, self.setting, self.wild, self.dtypes = rng, opset, setting, wild, dtypes
        self.elements = elements
        self.inputs: list[Value] = []
        self.infos: dict[str, onnx.ValueInfoProto] = {}
        self.values: list[Value] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.steps: list[Step] = []
        self.domains: set[str] = set()
        self.preferred: set[str] = set()  # values that are picked where they fit
        self._names = 0

    # -- choices -------------------------------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        """True this often."""
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, items: Sequence[Any]) -> Any:
        """One of them; raises Rejected where there is none."""
        if not items:
            raise Rejected("nothing to choose from")
        return items[int(self.rng.integers(0, len(items)))]

    def pick(
        self, dtypes: Iterable[np.dtype[Any]], test: Callable[[Value], bool] = lambda _: True, *, fresh: float = 0.1
    ) -> Value:
        """A tensor of one of these types for which `test` holds: a late one rather than an early one, at times a new
        input."""
        wanted = tuple(dtypes)
        if self.chance(fresh):
            made = self.new_input(self.choose([d for d in self.dtypes if d in wanted] or wanted))
            if test(made):
                return made
        found = [value for value in self.values if value.kind == "tensor" and value.dtype in wanted and test(value)]
        if not found:
            raise Rejected("no value fits")
        found = [value for value in found if value.name in self.preferred] or found
        return found[max(self.number(0, len(found) - 1), self.number(0, len(found) - 1))]

    def like(self, other: Value) -> Value:
        """A value of the same type and shapes."""
        return self.pick([other.dtype], lambda value: value.shapes == other.shapes, fresh=0)

    def broadcastable(self, other: Value) -> Value:
        """A value of the same type whose shape broadcasts with that of `other`; a new weight or input of fitting shape
        at times."""
        if self.chance(0.4):
            return self.fitting(other)
        return self.pick([other.dtype], lambda value: _broadcasts(value, other), fresh=0)

    def fitting(self, other: Value) -> Value:
        """A new weight that broadcasts to `other`: trailing sizes of it where they are fixed, 1 elsewhere."""
        rank = self.number(0, other.rank)
        axes = range(other.rank - rank, other.rank)
        shape = tuple(other.shape[a] if other.fixed(a) and self.chance(0.7) else 1 for a in axes)
        return self.constant(self.contents(other.dtype, shape))

    # -- values --------------------------------------------------------------------------------------------------------

    def name(self, stem: str) -> str:
        """A name that nothing has yet."""
        self._names += 1
        return f"{stem}{self._names}"

    def contents(self, dtype: np.dtype[Any], shape: Shape) -> Array:
        """Random contents."""
        return random_array(self.rng, dtype, shape, self.wild)

    def new_dims(self, rank: int) -> list[int | str]:
        """Sizes of a new input: small numbers, 1 and symbols; rarely 0."""
        symbols = list(self.setting.symbols)
        if self.chance(0.01):
            return [self.choose([0, 2, 3]) for _ in range(rank)]
        pool: list[int | str] = [1, 2, 3, 4, 5, 8, self.number(1, 17), 16, *symbols, *symbols, *symbols]
        return [self.choose(pool) for _ in range(rank)]

    def new_input(self, dtype: np.dtype[Any] | None = None, dims: Sequence[int | str] | None = None) -> Value:
        """A new input of the model; `dims` may name symbols."""
        dtype = self.dtypes[self.number(0, len(self.dtypes) - 1)] if dtype is None else dtype
        dims = self.new_dims(self.choose([0, 1, 2, 2, 3, 3, 4, 4])) if dims is None else dims
        shapes = [
            tuple(d if isinstance(d, int) else self.setting.symbols[d][k] for d in dims)
            for k in range(self.setting.count)
        ]
        if any(np.prod(shape) > self.elements for shape in shapes):
            raise Rejected("too large")
        value = Value(self.name("x"), dtype, tuple(self.contents(dtype, shape) for shape in shapes))
        self.inputs.append(value)
        self.values.append(value)
        self.infos[value.name] = helper.make_tensor_value_info(value.name, onnx_type(dtype), list(dims))
        return value

    def constant(self, array: Any, dtype: np.dtype[Any] | None = None) -> Value:
        """An initializer; one with the same contents is used again at times, and rarely it is the result of a Constant
        node."""
        array = np.asarray(array, dtype)
        equal = [
            v
            for v in self.values
            if v.known
            and v.dtype == array.dtype
            and v.shape == array.shape
            and v.arrays[0].tobytes() == array.tobytes()
        ]
        if equal and array.dtype != object and self.chance(0.7):
            return self.choose(equal)
        value = Value(self.name("w"), array.dtype, (array,) * self.setting.count, known=True)
        self.weights[value.name] = tensor_of(array, value.name)
        self.values.append(value)
        return value

    def ints(self, *numbers: int) -> Value:
        """A vector of int64, as an initializer."""
        return self.constant(np.array(numbers, I64))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def add(self, op_type: str, *inputs: Value | None, **attributes: Any) -> Value:
        """A node; answers its first output. `attributes` as `add_all` takes them."""
        return self.add_all(op_type, *inputs, **attributes)[0]

    def add_all(self, op_type: str, *inputs: Value | None, **attributes: Any) -> list[Value]:
        """A node; answers its outputs. Among the attributes, `outputs` is how many, `domain` the operator's, `captured`
        what its subgraphs read.

        Raises Rejected where the node cannot run in every setting.
        """
        domain, captured = attributes.pop("domain", ""), attributes.pop("captured", ())
        names = [self.name("v") for _ in range(attributes.pop("outputs", 1))]
        given = [value.name if value is not None else "" for value in inputs]
        node = helper.make_node(op_type, given, names, name=self.name(f"{op_type}_"), domain=domain, **attributes)
        read = list({value.name: value for value in (*inputs, *captured) if value is not None}.values())
        runner = NodeRunner(node, read, self.opsets(domain))
        for k in range(self.setting.count):
            require_digits(op_type, [value.arrays[k] for value in inputs if value is not None])
        exclude("doubles-without-a-kernel", runner.by_reference and any(value.dtype == F64 for value in read))
        results = [
            runner.run([value.arrays[k] for value in read if not value.known]) for k in range(self.setting.count)
        ]
        made = [self._result(name, [result[i] for result in results]) for i, name in enumerate(names)]
        self.steps.append(Step(node, runner, [value.name for value in read if not value.known], names))
        self.values += made
        self.domains |= {domain} - {""}
        return made

    def opsets(self, *domains: str) -> list[onnx.OperatorSetIdProto]:
        """The default domain's and these."""
        extra = {"com.microsoft": 1, "ai.onnx.ml": 3}
        return [
            helper.make_opsetid("", self.opset),
            *(helper.make_opsetid(domain, extra[domain]) for domain in domains if domain),
        ]

    def _result(self, name: str, arrays: Sequence[Any]) -> Value:
        first = arrays[0]
        if first is None:
            return Value(name, F32, tuple(arrays), kind="optional")
        if isinstance(first, list):
            dtypes = [item.dtype for array in arrays for item in array]
            return Value(name, dtypes[0] if dtypes else F32, tuple(arrays), kind="seq")
        if len({array.ndim for array in arrays}) != 1 or len({array.dtype for array in arrays}) != 1:
            raise Rejected("rank or type depends on the setting")
        for array in arrays:
            self._require_sane(array)
        return Value(name, first.dtype, tuple(arrays))

    def _require_sane(self, array: Array) -> None:
        if array.size > self.elements or array.ndim > RANK_LIMIT:
            raise Rejected("too large")
        if self.wild or not is_float(array.dtype) or not array.size:
            return
        with np.errstate(all="ignore"):
            top = np.max(np.abs(array.astype(np.float64)))
        if not top <= MAGNITUDE_LIMIT:
            raise Rejected("not finite, or too large")


def _broadcasts(value: Value, other: Value) -> bool:
    for a, b in zip(value.shapes, other.shapes, strict=True):
        if any(x != y and 1 not in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False)):
            return False
    return True
