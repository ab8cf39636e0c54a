"""From `@main` to steps, waves and memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fuseline.buffers import BufferRef
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchOp
from fuseline.passes.schedule.main_calls import main_function
from fuseline.passes.schedule.order_dispatches import OrderDispatchesPass
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, DispatchStep, FillStep, HostStep
from tests.unit.passes.schedule.programs import executable, parse

ScheduleOf = Callable[..., Schedule]

T = "tensor<64xf32>"
DYNAMIC = "tensor<?xf32>"


def _one(result: str, operand: str, type_: str = T, size: str = "%n") -> str:
    dims = f"{{{size}}}" if "?" in type_ else ""
    return f"%{result} = flow.dispatch @one::@one_entry(%{operand}, {size}) : ({type_}{dims}, index) -> {type_}{dims}\n"


def _two(result: str, left: str, right: str, type_: str = T, size: str = "%n") -> str:
    dims = f"{{{size}}}" if "?" in type_ else ""
    return (
        f"%{result} = flow.dispatch @two::@two_entry(%{left}, %{right}, {size}) : ({type_}{dims}, {type_}{dims}, "
        f"index) -> {type_}{dims}\n"
    )


def _main(body: str, results: str, count: int = 1, type_: str = T) -> str:
    types = ", ".join([type_] * count)
    return f"""
  func.func @main(%x: {type_} {{fuseline.name = "x", fuseline.dims = ["batch"]}}) -> ({types}) {{
    %n = arith.constant 64 : index
    {body}
    func.return {results} : {types}
  }}"""


def test_diamond_shares_a_wave(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_one("a", "x") + _one("b", "a") + _one("c", "a") + _two("r", "b", "c"), "%r"))
    assert [step.wave for step in schedule.steps] == [0, 1, 1, 2]
    assert schedule.statistics.barriers == 2
    assert schedule.statistics.transient_bytes == 3 * 256
    last = schedule.steps[-1]
    assert isinstance(last, DispatchStep)
    assert last.results[0].buffer == BufferRef("output", 0)
    assert last.sizes == (("s0", 64),)


def test_chain_reuses_two_buffers(schedule_of: ScheduleOf) -> None:
    body = _one("v1", "x") + "".join(_one(f"v{i}", f"v{i - 1}") for i in range(2, 9))
    assert schedule_of(_main(body, "%v8")).arena_bytes == 512


def test_in_place_only_when_told(schedule_of: ScheduleOf) -> None:
    body = _one("v1", "x") + "".join(_one(f"v{i}", f"v{i - 1}") for i in range(2, 9))
    assert schedule_of(_main(body, "%v8"), in_place=lambda step: [(0, 0)]).arena_bytes == 256


def test_in_place_spares_an_operand_that_lives_on(schedule_of: ScheduleOf) -> None:
    body = _one("a", "x") + _one("b", "a") + _two("c", "a", "b") + _one("r", "c")
    schedule = schedule_of(_main(body, "%r"), in_place=lambda step: [(0, 0)])
    steps = {s.results[0].buffer: s for s in schedule.steps if isinstance(s, DispatchStep)}
    assert schedule.arena_bytes == 512 and len(steps) == 3  # c lies on a, never b on a
    first, second, third, _ = schedule.steps
    assert isinstance(first, DispatchStep) and isinstance(second, DispatchStep) and isinstance(third, DispatchStep)
    assert first.results[0].buffer == third.results[0].buffer != second.results[0].buffer


def test_reshape_is_an_alias(schedule_of: ScheduleOf) -> None:
    body = (
        "%e = tensor.expand_shape %x [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>\n"
        "%k = tensor.collapse_shape %e [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>\n" + _one("r", "k")
    )
    schedule = schedule_of(_main(body, "%r"))
    (step,) = schedule.steps
    assert isinstance(step, DispatchStep) and step.operands[0].buffer == BufferRef("input", 0)
    assert schedule.arena_bytes == 0


def test_returned_reshape_is_computed_in_the_output(schedule_of: ScheduleOf) -> None:
    body = _one("a", "x") + (
        "%e = tensor.expand_shape %a [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>\n"
        "%k = tensor.collapse_shape %e [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>\n"
    )
    (step,) = schedule_of(_main(body, "%k")).steps
    assert isinstance(step, DispatchStep) and step.results[0].buffer == BufferRef("output", 0)


def test_returned_input_constant_and_value_twice(schedule_of: ScheduleOf) -> None:
    body = _one("a", "x") + "%c = arith.constant dense<2.5> : tensor<64xf32>\n"
    schedule = schedule_of(_main(body, "%x, %c, %a, %a", 4))
    copies = [step for step in schedule.steps if isinstance(step, CopyStep)]
    assert {(c.source.buffer, c.target.buffer) for c in copies} == {
        (BufferRef("input", 0), BufferRef("output", 0)),
        (BufferRef("constant", 0), BufferRef("output", 1)),
        (BufferRef("output", 2), BufferRef("output", 3)),
    }
    assert schedule.statistics.copies == 3
    np.testing.assert_array_equal(schedule.constants[0], np.full(64, 2.5, np.float32))
    late = next(c for c in copies if c.source.buffer == BufferRef("output", 2))
    assert late.wave > next(s.wave for s in schedule.steps if isinstance(s, DispatchStep))


def test_an_output_read_again_stays_in_its_buffer(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_one("a", "x") + _one("b", "a"), "%a, %b", 2))
    second = schedule.steps[1]
    assert isinstance(second, DispatchStep) and second.operands[0].buffer == BufferRef("output", 0)
    assert schedule.arena_bytes == 0


def test_resources_are_shared_and_not_copied(schedule_of: ScheduleOf) -> None:
    ctx = new_context()
    weights = np.arange(64, dtype=np.float32)
    ctx.resources["w"] = weights
    body = (
        f"%w = arith.constant dense_resource<w> : {T}\n%v = arith.constant dense_resource<w> : {T}\n"
        + _two("a", "x", "w")
        + _two("r", "a", "v")
    )
    schedule = schedule_of(_main(body, "%r"), ctx)
    assert len(schedule.constants) == 1 and schedule.constants[0] is weights


def test_missing_resource_is_refused(schedule_of: ScheduleOf) -> None:
    body = f"%w = arith.constant dense_resource<nowhere> : {T}\n" + _two("a", "x", "w")
    with pytest.raises(FuselineError, match=r"E0305.*nowhere"):
        schedule_of(_main(body, "%a"))


def test_symbolic_sizes(schedule_of: ScheduleOf) -> None:
    body = "%z = arith.constant 0 : index\n%m = tensor.dim %x, %z : tensor<?xf32>\n"
    body += (
        _one("v1", "x", DYNAMIC, "%m")
        + _one("v2", "v1", DYNAMIC, "%m")
        + _one("v3", "v2", DYNAMIC, "%m")
        + _one("r", "v3", DYNAMIC, "%m")
    )
    schedule = schedule_of(_main(body, "%r", type_=DYNAMIC))
    assert schedule.symbols == {"batch": (1, None)}
    for batch in (1, 16, 17, 1000):
        assert d.evaluate(schedule.arena_bytes, {"batch": batch}) == 2 * -(-4 * batch // 64) * 64


def test_bounded_sizes_are_planned_at_their_bound(schedule_of: ScheduleOf) -> None:
    ctx = new_context()
    ctx.symbols["batch"] = d.symbol("batch", 1, 100)
    body = (
        "%z = arith.constant 0 : index\n%m = tensor.dim %x, %z : tensor<?xf32>\n"
        + _one("v", "x", DYNAMIC, "%m")
        + _one("r", "v", DYNAMIC, "%m")
    )
    assert schedule_of(_main(body, "%r", type_=DYNAMIC), ctx).arena_bytes == 448


def test_host_call_is_alone_in_its_wave(schedule_of: ScheduleOf) -> None:
    attributes = 'attributes {fuseline.host_op = "Foo", fuseline.onnx_node = "aGk="}'
    declaration = f"func.func private @host.Foo.0({T}) -> {T} {attributes}\n"
    body = _one("a", "x") + f"%h = func.call @host.Foo.0(%x) : ({T}) -> {T}\n" + _two("r", "a", "h")
    schedule = schedule_of(declaration + _main(body, "%r"))
    waves = [step.wave for step in schedule.steps]
    assert sorted(waves) == [0, 1, 2]
    host = next(step for step in schedule.steps if isinstance(step, HostStep))
    assert (host.executor, host.node) == ("onnx", b"hi")
    assert schedule.statistics.host_ops == 1


def test_sizes_that_a_host_call_tells(schedule_of: ScheduleOf) -> None:
    """What needs such a size comes after the call, even where it reads nothing of it; its memory lies behind the rest
    of the arena."""
    attributes = 'attributes {fuseline.host_op = "NonZero", fuseline.onnx_node = "aGk="}'
    declaration = f"func.func private @host.NonZero.0({T}) -> {DYNAMIC} {attributes}\n"
    body = _one("a", "x") + f'%h = func.call @host.NonZero.0(%a) {{fuseline.dims = [["found"]]}} : ({T}) -> {DYNAMIC}\n'
    body += f"%z = arith.constant 0 : index\n%m = tensor.dim %h, %z : {DYNAMIC}\n"
    body += f"%e = flow.dispatch @one::@one_entry(%x, %m) : ({T}, index) -> {DYNAMIC}{{%m}}\n"
    body += _two("s", "h", "e", DYNAMIC, "%m") + _one("b", "a")
    schedule = schedule_of(declaration + _main(body, "%b"))
    host = next(step for step in schedule.steps if isinstance(step, HostStep))
    sized = [step for step in schedule.steps if isinstance(step, DispatchStep) and step.sizes[0][1] != 64]
    assert len(sized) == 2 and all(step.wave > host.wave for step in sized)
    assert schedule.initial_arena_bytes == 256
    assert d.symbols(host.arena_bytes) == {d.Symbol("found")} and host.arena_bytes == schedule.arena_bytes
    before = [step for step in schedule.steps if isinstance(step, DispatchStep) and step.wave < host.wave]
    assert all(not d.symbols(step.operands[0].buffer.offset) for step in before)


def _filled(returned: str) -> str:
    return _main(
        f"%v = arith.constant 2.5 : f32\n%e = tensor.empty() : {T}\n%f = linalg.fill ins(%v : f32) outs(%e : {T}) -> "
        f"{T}\n" + _two("r", "x", "f"),
        returned,
        returned.count("%"),
    )


def test_a_small_fill_that_is_only_read_is_a_constant(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_filled("%r"))
    np.testing.assert_array_equal(schedule.constants[0], np.full(64, 2.5, np.float32))
    step = next(step for step in schedule.steps if isinstance(step, DispatchStep))
    assert step.operands[1].buffer == BufferRef("constant", 0) and schedule.statistics.fills == 0


def test_a_fill_that_is_returned_is_a_step(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_filled("%r, %f"))
    (fill,) = (step for step in schedule.steps if isinstance(step, FillStep))
    np.testing.assert_array_equal(schedule.constants[fill.source.buffer.number], np.array([2.5], np.float32))
    step = next(step for step in schedule.steps if isinstance(step, DispatchStep))
    assert step.operands[1].buffer == fill.target.buffer == BufferRef("output", 1) and step.wave > fill.wave
    assert (schedule.statistics.fills, schedule.statistics.copies) == (1, 0)


def test_a_fill_that_is_returned_twice_is_copied_once(schedule_of: ScheduleOf) -> None:
    statistics = schedule_of(_filled("%f, %f")).statistics
    assert (statistics.fills, statistics.copies) == (1, 1)


def test_a_fill_of_free_size_is_a_step(schedule_of: ScheduleOf) -> None:
    body = (
        f"%z = arith.constant 0 : index\n%m = tensor.dim %x, %z : {DYNAMIC}\n%v = arith.constant 2.5 : f32\n%e = "
        f"tensor.empty(%m) : {DYNAMIC}\n"
    )
    body += f"%f = linalg.fill ins(%v : f32) outs(%e : {DYNAMIC}) -> {DYNAMIC}\n" + _two("r", "x", "f", DYNAMIC, "%m")
    schedule = schedule_of(_main(body, "%r", type_=DYNAMIC))
    (fill,) = (step for step in schedule.steps if isinstance(step, FillStep))
    assert fill.target.buffer.segment == "arena" and d.symbols(fill.target.dims[0])


def test_call_of_an_ordinary_function_is_refused(schedule_of: ScheduleOf) -> None:
    declaration = "func.func private @other(tensor<64xf32>) -> tensor<64xf32>\n"
    with pytest.raises(FuselineError, match="no host operator"):
        schedule_of(declaration + _main(f"%h = func.call @other(%x) : ({T}) -> {T}\n", "%h"))


def test_tensor_op_outside_a_dispatch_is_refused(schedule_of: ScheduleOf) -> None:
    body = (
        "%t = tensor.empty() : tensor<128xf32>\n%r = tensor.extract_slice %t[0] [64] [1] : tensor<128xf32> to "
        "tensor<64xf32>\n"
    )
    with pytest.raises(FuselineError, match=r"tensor.extract_slice cannot be scheduled"):
        schedule_of(_main(body, "%r"))


def test_the_pass_sorts_main_and_is_idempotent() -> None:
    body = _one("a", "x") + _one("late", "x") + _one("b", "a")
    body += "%e = tensor.expand_shape %b [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>\n"
    body += (
        "%k = tensor.collapse_shape %e [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>\n"
        + _one("c", "k")
        + _two("r", "c", "late")
    )
    ctx, module = parse(executable("one", 1) + executable("two", 2) + _main(body, "%r"))
    OrderDispatchesPass().apply(ctx, module)
    module.verify()
    names = [op.res[0].name_hint for op in main_function(module).body.block.ops if isinstance(op, DispatchOp)]
    assert names == ["a", "b", "late", "c", "r"]
    text = str(module)
    OrderDispatchesPass().apply(ctx, module)
    assert str(module) == text


def test_module_without_main_is_refused(schedule_of: ScheduleOf) -> None:
    with pytest.raises(FuselineError, match="@main"):
        schedule_of("")


def test_a_result_that_is_no_tensor_is_refused(schedule_of: ScheduleOf) -> None:
    with pytest.raises(FuselineError, match="value of type index"):
        schedule_of("func.func @main() -> index {\n%n = arith.constant 3 : index\nfunc.return %n : index\n}")


def test_another_number_of_sizes_than_the_entry_takes_is_refused(schedule_of: ScheduleOf) -> None:
    call = f"%a = flow.dispatch @one::@one_entry(%x, %n, %n) : ({T}, index, index) -> {T}\n"
    with pytest.raises(FuselineError, match="takes 1 sizes, its dispatch passes 2"):
        schedule_of(_main(call, "%a"))


def _retyped(main: str, result: str, type_: str) -> str:
    """`@main` with a result of another type."""
    return main.replace(f"-> ({T})", f"-> ({type_})").replace(f"{result} : {T}", f"{result} : {type_}")


HOST = 'fuseline.host_op = "Foo", fuseline.onnx_node = "aGk="'
TAKES, GIVES = 'fuseline.operand_dtypes = ["uint64"]', 'fuseline.result_dtypes = ["uint64"]'


def test_what_a_host_call_returns_is_of_the_type_that_it_declares(schedule_of: ScheduleOf) -> None:
    """A signless integer does not say whether it has a sign."""
    wide = "tensor<64xi64>"
    declaration = f"func.func private @host.Foo.0({T}) -> {wide} attributes {{{HOST}, {GIVES}}}\n"
    main = _main(f"%h = func.call @host.Foo.0(%x) : ({T}) -> {wide}\n", "%h")
    host = next(
        step for step in schedule_of(declaration + _retyped(main, "%h", wide)).steps if isinstance(step, HostStep)
    )
    assert [operand.dtype for operand in host.results] == ["uint64"]
    assert [operand.dtype for operand in host.operands] == ["float32"]


def test_what_the_border_and_host_operators_take_is_of_the_type_that_they_say(schedule_of: ScheduleOf) -> None:
    wide = "tensor<64xi64>"
    named = f'{wide} {{fuseline.dtype = "uint64"}}'
    declarations = f"func.func private @host.Foo.0({T}) -> {wide} attributes {{{HOST}, {GIVES}}}\n"
    declarations += f"func.func private @host.Bar.0({wide}) -> {wide} attributes {{{HOST}, {TAKES}, {GIVES}}}\n"
    calls = f"%h = func.call @host.Foo.0(%x) : ({T}) -> {wide}\n%g = func.call @host.Bar.0(%h) : ({wide}) -> {wide}\n"
    main = _retyped(_main(calls, "%g"), "%g", wide).replace(f"-> ({wide})", f"-> ({named})")
    schedule = schedule_of(declarations + main)
    _, second = (step for step in schedule.steps if isinstance(step, HostStep))
    assert [operand.dtype for operand in (*second.operands, *second.results)] == ["uint64", "uint64"]
    assert [result.dtype for result in schedule.outputs] == ["uint64"]


def test_a_call_of_no_host_operator_is_refused_with_its_nodes(schedule_of: ScheduleOf) -> None:
    call = f'%h = func.call @elsewhere(%x) : ({T}) -> {T} loc(fused["a", "b"])\n'
    with pytest.raises(FuselineError, match="call of elsewhere, which is no host operator") as error:
        schedule_of(f"func.func private @elsewhere({T}) -> {T}\n" + _main(call, "%h"))
    assert (error.value.code, error.value.node) == ("E0305", "a, b")


def test_sizes_of_another_type_are_refused_with_their_node(schedule_of: ScheduleOf) -> None:
    row = 'tensor.from_elements %c, %c : tensor<2xi32> loc("shape")'
    main = _main(f"%c = arith.constant 5 : i32\n%r = {row}\n", "%r")
    with pytest.raises(FuselineError, match="tensor.from_elements of int32 cannot be scheduled") as error:
        schedule_of(_retyped(main, "%r", "tensor<2xi32>"))
    assert (error.value.code, error.value.node) == ("E0305", "shape")


def test_arguments_need_not_say_more_than_their_type(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_one("r", "x"), "%r").replace(', fuseline.dims = ["batch"]', ""))
    (operand,) = schedule.inputs
    assert (operand.name, operand.dims, operand.dtype) == ("x", (64,), "float32")
