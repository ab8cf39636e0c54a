"""Dispatches of odd sizes, of every family whose kernels have choices, and what they compute by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Attribute

from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_function
from fuseline.ir.build import element_of
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.kernel_choice import given_choices
from fuseline.targets.cpu.families import families
from fuseline.targets.cpu.families.family import Alternative, Plan, Policy
from fuseline.targets.cpu.isa import Machine, machine
from tests.graphs.program import Program, Size
from tests.kernels import Array, Runner, assert_close, random, shape_at
from tests.unit.targets.cpu.blocked.programs import gate_and_up
from tests.unit.targets.cpu.contraction_families.narrow import integers, narrow
from tests.unit.targets.cpu.contraction_families.test_convolution import Case as Direct
from tests.unit.targets.cpu.contraction_families.test_convolution import maps_of
from tests.unit.targets.cpu.contraction_families.test_grouped import Case as Grouped
from tests.unit.targets.cpu.contraction_families.test_window import Case as Window
from tests.unit.targets.cpu.winograd.convolutions import Case as Filtered


@dataclass
class ChoiceCase:
    """A dispatch, sizes that only the run knows, and bits in which results agree with the interpreter's."""

    view: DispatchView
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    bits: int = 17

    @cached_property
    def arrays(self) -> list[Array]:
        """Random arguments."""
        found: list[Array] = []
        for seed, argument in enumerate(self.view.tensors):
            dtype, shape = numpy_dtype(element_of(argument)), shape_at(self.view, argument, self.sizes)
            whole = np.issubdtype(dtype, np.integer)
            found.append(integers(shape, 8 * dtype.itemsize, seed) if whole else random(shape, seed, dtype))
        return found

    @cached_property
    def wanted(self) -> list[Array]:
        """What the interpreter makes of them, exactly as the dispatch says."""
        numbers = [np.asarray(self.sizes[name]) for name in self.view.size_names]
        return evaluate_function(self.view.entry, [*self.arrays, *numbers], {})

    def runner(self, choices: Mapping[str, str], isa: Machine | None = None, policy: Policy | None = None) -> Runner:
        """The dispatch as the families lower it where `choices` are asked for."""
        asked = Policy(choices=given_choices(choices)) if policy is None else policy
        return Runner(families(asked), self.view, isa)

    def check(self, choices: Mapping[str, str], policy: Policy | None = None) -> Plan:
        """Compare what the machine makes with the interpreter, in one range of workgroups and in three; the plan."""
        run = self.runner(choices, policy=policy)
        for parts in (1, 3):
            for found, wanted in zip(run(*self.arrays, sizes=self.sizes, parts=parts), self.wanted, strict=True):
                assert_close(found, wanted, bits=self.bits, least=1.0)
        return run.plan

    def alternatives(self, policy: Policy | None = None) -> list[tuple[Plan, Alternative]]:
        """What may be asked for, with the plan of the kernel that it is asked of: the dispatch's or a sub-kernel's."""
        offered = families(policy or Policy())
        plan = Runner(offered, self.view).plan
        kernels = plan.kernel_plans[1:] or plan.kernel_plans
        return [(one, found) for one in kernels for family in offered for found in family.alternatives(one, machine())]


def _product(m: Size, n: int, k: int, *, constant: bool = True, element: Attribute = f32) -> DispatchView:
    p = Program((m, k), (k, n), constants=[1] if constant else [], element=element)
    return p.dispatch(p.relu(p.matmul(p.x[0], p.x[1])))


def _half(m: int, n: int, k: int) -> DispatchView:
    """Rows and columns are extended as they are read."""
    p = Program((m, k), (k, n), constants=[1], arguments=[f16, f16])
    rows, columns = (p.over(x, body=lambda b: b.op(arith.ExtFOp, b.args[0], f32)) for x in p.x)
    return p.dispatch(p.matmul(rows, columns))


def _boxed() -> DispatchView:
    """A convolution of an image that is computed."""
    p = Program((1, 3, 37, 38), (3, 3, 3, 40), constants=[1])
    x = p.pad(p.relu(p.x[0]), [0, 0, 1, 1], [0, 0, 1, 1])
    y = p.multiply_add(x, p.x[1], p.zeros(1, 19, 19, 40), maps_of(2, [2, 2], [1, 1], first=True), "pppprrr")
    return p.dispatch(y)


def _bytes(m: int, n: int, k: int) -> DispatchView:
    p = narrow((m, k), (k, n), bits=(8, 8), constants=[1])
    return p.dispatch(p.matmul(p.x[0], p.x[1]))


CASES: dict[str, Callable[[], ChoiceCase]] = {
    "product": lambda: ChoiceCase(_product(67, 150, 45)),
    "product, f64": lambda: ChoiceCase(_product(37, 61, 29, element=f64)),
    "product, f16": lambda: ChoiceCase(_half(41, 70, 33), bits=7),
    "product, i8": lambda: ChoiceCase(_bytes(43, 70, 39)),
    "one row": lambda: ChoiceCase(_product(1, 300, 77)),
    "product at run time": lambda: ChoiceCase(_product(53, 90, 31, constant=False)),
    "rows at run time": lambda: ChoiceCase(_product("m", 90, 31), {"m": 47}),
    "convolution": lambda: ChoiceCase(Direct((9, 19), (3, 3), (6, 40), pad=(1, 1), stride=2).view),
    "5x5 convolution": lambda: ChoiceCase(Direct((5, 21), (5, 5), (3, 40), pad=(2, 2)).view),
    "computed image": lambda: ChoiceCase(_boxed()),
    "filtered": lambda: ChoiceCase(Filtered((15, 29), (24, 70)).view, bits=13),
    "filtered, one dimension": lambda: ChoiceCase(Filtered((131,), (33, 50)).view, bits=13),
    "two roots": lambda: ChoiceCase(gate_and_up(35, 50, 33, constant=True), bits=15),
    "depthwise": lambda: ChoiceCase(Window((15, 33), (3, 3), 50, pad=(1, 1)).depthwise()),
    "crowded depthwise": lambda: ChoiceCase(Window((15, 15), (3, 3), 256, pad=(1, 1)).depthwise()),
    "maximum": lambda: ChoiceCase(Window((17, 33), (3, 3), 50, stride=2).pooling("max", 0.0)),
    "groups": lambda: ChoiceCase(Grouped((13, 15), (3, 3), (9, 4, 4), pad=(1, 1)).view()),
}
