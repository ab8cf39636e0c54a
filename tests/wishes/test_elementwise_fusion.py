"""Elementwise ops that become one, and what is counted and shown of it (rows 1, 4, 7, 10, 11, 12 and 18 of
docs/wishes.md)."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.linalg.ops import GenericOp

import fuseline
from fuseline import api
from fuseline.cli.main import main
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.registry import parse_passes
from fuseline.pipeline import PASS_PHASES
from tests.draws import RNG, generator
from tests.graphs.onnx_text import onnx_model
from tests.small_models import SMALL_MODELS
from tests.wishes.compared import by_default, compiled, missed, mlir, moves

FLOATS = {"float": np.float32, "float16": np.float16, "double": np.float64}
UNARY = ("Erf", "Tanh", "Sigmoid", "Neg", "Relu", "Abs")


# row 1: two elementwise ops left apart become one ---------------------------------------------------------------------


def _tail(rng: np.random.Generator, length: int) -> str:
    """So many elementwise ops behind `c`, some with an operand per channel, to `y`."""
    lines, source = list[str](), "c"
    for i in range(length):
        name = "y" if i == length - 1 else f"e{i}"
        op = str(rng.choice(UNARY)) if rng.random() < 0.6 else "Add"
        lines.append(f"{name} = Add({source}, b)" if op == "Add" else f"{name} = {op}({source})")
        source = name
    return " ".join(lines)


ROOTS = {
    "convolution": ("[1, 6, 9, 11]", "c = Conv<pads = [1, 1, 1, 1]>(x, w)", (8, 6, 3, 3), (8, 1, 1)),
    "depthwise": ("[1, 6, 9, 11]", "c = Conv<group = 6>(x, w)", (6, 1, 3, 3), (6, 1, 1)),
    "product": ("[7, 12]", "c = MatMul(x, w)", (12, 9), (9,)),
    "rows": ("[n, 12]", "c = Mul(x, w)", (12,), (12,)),
}


@pytest.mark.parametrize(("element", "root", "length"), by_default(product(["float", "double"], ROOTS, [2, 5, 9]), 6))
def test_row_1_what_follows_a_root_is_one_op(root: str, length: int, element: str):
    dims, body, weight, bias = ROOTS[root]
    tail = _tail(generator(f"{root} {length}"), length)
    weights = {"w": (0.3 * RNG.standard_normal(weight)).astype(FLOATS[element])}
    if " b)" in tail:
        weights["b"] = RNG.standard_normal(bias).astype(FLOATS[element])
    model = onnx_model(f"({element}{dims} x) => (y) {{ {body} {tail} }}", weights)
    program = compiled(model, {"n": 5})
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)
    generics = [line for line in api.emit(model, "dedup").splitlines() if "linalg.generic" in line]
    assert len(generics) == program.stats["generic_ops_after"] == (1 if root == "rows" else 2), tail


# row 4: equal ops are one up to the order of loops and operands -------------------------------------------------------


def _generic(name: str, shape: list[int], loops: list[int], swapped: bool, element: str, ops: list[str]) -> str:
    """`ops` over %x and %y, the loops in this order, commutative operands swapped or not."""
    places = ", ".join(f"d{loops[axis]}" for axis in range(len(shape)))
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    type_ = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    iterators = ", ".join(['"parallel"'] * len(shape))
    inputs = ("%y", "%x") if swapped else ("%x", "%y")
    lines, last = list[str](), "%p"
    for i, op in enumerate(ops):
        pair = ("%q", last) if swapped else (last, "%q")
        lines.append(f"    %v{i} = arith.{op} {pair[0]}, {pair[1]} : {element}")
        last = f"%v{i}"
    first = "%q: {0}, %p: {0}" if swapped else "%p: {0}, %q: {0}"
    maps = ", ".join([f"affine_map<({dims}) -> ({places})>"] * 3)
    return f"""  %e{name} = tensor.empty() : {type_}
  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins({", ".join(inputs)} : {type_}, {type_}) outs(%e{name} : {type_}) {{
  ^bb0({first.format(element)}, %o: {element}):
{chr(10).join(lines)}
    linalg.yield {last} : {element}
  }} -> {type_}"""


@pytest.mark.parametrize(
    ("element", "rank", "seed"), by_default(product(["f32", "i32", "f16"], [2, 1, 3, 4], range(3)), 8)
)
def test_row_4_equal_ops_are_one(rank: int, seed: int, element: str, tmp_path: Path):
    rng = generator(f"{rank} {seed}")
    shape = [int(size) for size in rng.integers(2, 7, rank)]
    ops = [str(op) for op in rng.choice(["addf", "mulf", "maximumf"], int(rng.integers(1, 4)))]
    ops = [{"addf": "addi", "mulf": "muli", "maximumf": "maxsi"}[op] if element == "i32" else op for op in ops]
    orders = [[int(loop) for loop in rng.permutation(rank)] for _ in range(3)]
    type_ = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    parts = [_generic("abc"[i], shape, orders[i], i % 2 == 1, element, ops) for i in range(3)]
    other = _generic("z", shape, orders[0], False, element, [*ops, ops[0]])
    text = f"""func.func @f(%x: {type_}, %y: {type_}) -> ({", ".join([type_] * 4)}) {{
{chr(10).join([*parts, other])}
  return %a, %b, %c, %z : {", ".join([type_] * 4)}
}}"""
    ctx = new_context()
    module = parse_module(text, ctx)
    for step in parse_passes("cse", PASS_PHASES):
        step.apply(ctx, module)
    assert sum(isinstance(op, GenericOp) for op in module.walk()) == 2, "the three are one, the longer one is another"
    compiled(mlir(tmp_path, text))


# row 7: a small producer of large readers -----------------------------------------------------------------------------


def _chain(columns: int, rows: int, planes: int, element: str) -> onnx.ModelProto:
    inputs = f"{element}[{columns}] s, {element}[{rows}, {columns}] x, {element}[{planes}, {rows}, {columns}] y"
    return onnx_model(f"({inputs}) => (a, b) {{ e = Exp(s)  t = Tanh(e)  a = Mul(x, t)  b = Add(y, t) }}")


FEW = [(96, 4, 2), (5, 8, 3), (130, 3, 1)]


@pytest.mark.parametrize(
    ("element", "threads", "columns", "rows", "planes"),
    by_default([(e, t, *few) for e in ("float", "double") for t in (2, 1, 4) for few in FEW], 4),
)
def test_row_7_a_launch_costs_more_than_a_few_elements(
    element: str, threads: int, columns: int, rows: int, planes: int
):
    program = compiled(_chain(columns, rows, planes, element), threads=threads)
    assert program.stats["dispatches"] == 1, missed(program)


MANY = [(2, 96, 64), (1, 96, 64), (4, 33, 200), (2, 1000, 40)]


@pytest.mark.parametrize(("threads", "columns", "rows"), by_default(MANY, 2))
def test_row_7_the_choice_is_weighed_and_on_record(threads: int, columns: int, rows: int):
    """The small producer is no dispatch of its own; what stays apart of its readers says what it would cost."""
    program = compiled(_chain(columns, rows, 8, "float"), threads=threads)
    assert program.stats["dispatches"] <= 2, missed(program)
    assert all(
        {"Exp_0", "Tanh_1"} != {node for member in dispatch.members for node in member.nodes}
        for dispatch in program.record.dispatches
    )
    weighed = [one for one in program.decisions if one.verdict == "missed"]
    assert all(one.code in ("parallelism", "unprofitable", "strided-inner") and one.numbers for one in weighed), weighed
    assert (program.stats["dispatches"] == 1) == (not weighed)


# row 10: generics before and after ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "fusion"), by_default(product([1, 3, 6], ["default", "none", "aggressive"]), 5))
def test_row_10_generics_are_counted_before_and_after(length: int, fusion: str):
    names = ["x", *(f"v{i}" for i in range(length))]
    ops = [f"{after} = {UNARY[i % len(UNARY)]}({before})" for i, (before, after) in enumerate(pairwise(names))]
    body = " ".join(ops)
    program = compiled(onnx_model(f"(float[n, 7] x) => ({names[-1]}) {{ {body} }}"), {"n": 4}, fusion=fusion)
    counted = [program.stats[key] for key in ("generic_ops_before", "generic_ops_after")]
    assert counted == [length, length if fusion == "none" else 1]


@pytest.mark.parametrize("name", by_default(SMALL_MODELS, 4))
def test_row_10_the_count_is_that_of_the_ir(name: str):
    model = SMALL_MODELS[name]()
    program = fuseline.compile(model, target="null", cache=False)
    text = api.emit(model, "dedup", target="null", dedup="none")
    kept = [line for line in text.splitlines() if "linalg.generic" in line]
    assert program.stats["generic_ops_after"] <= len(kept) <= program.stats["generic_ops_before"]


# rows 11 and 12: a base and a change, the IR on the way ---------------------------------------------------------------


@pytest.mark.parametrize("rule", ["elementwise-epilogue", "root-chain"])
def test_row_11_a_folder_of_models_against_a_base(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("mlp", "diamond", "convolutions", "attention"):
        onnx.save(SMALL_MODELS[name](), folder / f"{name}.onnx")
    tables = dict[str, Path]()
    for which, more in (("base", []), ("change", ["--without-rule", rule])):
        assert main(["stats", str(folder), "--target", "null", "--threads", "2", "--json", *more]) == 0
        tables[which] = tmp_path / f"{which}.json"
        tables[which].write_text(capsys.readouterr().out)
    total = {
        which: sum(row["dispatches"] for row in json.loads(path.read_text())["models"])
        for which, path in tables.items()
    }
    more = total["change"] > total["base"]
    given = ["diff", str(tables["base"]), str(tables["change"])]
    assert main([*given, "--fail-if", "more-dispatches"]) == (1 if more else 0)
    assert more, "each of these rules decides about a model"
    assert main([*given[:1], str(tables["change"]), str(tables["base"]), "--fail-if", "more-dispatches"]) == 0
    assert main([*given, "--fail-if", "dispatches>1000"]) == 0


@pytest.mark.parametrize(
    ("command", "after"),
    by_default(product(["opt", "compile"], ["layout", "form-dispatch-regions", "cse", "propagate-transposes"]), 4),
)
def test_row_12_the_ir_after_a_pass(command: str, after: str, tmp_path: Path):
    """.. is printed for any pass or phase, and can be read again."""
    source, folder = tmp_path / "m.onnx", tmp_path / "printed"
    onnx.save(SMALL_MODELS["convolutions"](), source)
    given = ["--target", "null", "--emit", "dispatch", "-o", str(tmp_path / "out.mlir")]
    if command == "opt":
        assert (
            main(["compile", str(source), "--target", "null", "--emit", "input", "-o", str(tmp_path / "m.mlir")]) == 0
        )
        source, given = tmp_path / "m.mlir", ["-p", "cleanup,layout,form-dispatch-regions"]
    assert main([command, str(source), *given, f"--print-ir-after={after}", "--print-ir-to", str(folder)]) == 0
    printed = sorted(folder.iterdir())
    assert printed and all("func.func @main" in path.read_text() for path in printed)
    assert main(["opt", str(printed[-1]), "-p", "dead-code"]) == 0


# row 18: per backend --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "op"), [("elementwise", "tanh"), ("elementwise", "exp"), ("reduction", "addf")])
@pytest.mark.parametrize("target", by_default(["null", "cpu"], 1))
def test_row_18_operations_a_backend_lacks(target: str, kind: str, op: str, tmp_path: Path):
    (tmp_path / "npu.toml").write_text(f'name = "npu"\n[limits.{kind}]\nwithout_ops = ["{op}"]\n')
    text = "(float[5, 8] x) => (y, s) { t = Tanh(x) e = Exp(t) s = ReduceSum<keepdims = 0>(e, one) y = Relu(x) }"
    model = onnx_model(text, {"one": np.array([1])})
    asked: Any = {"target": f"{target}:{tmp_path / 'npu.toml'}", "cache": False}
    record = fuseline.compile(model, **asked).record
    (host,) = {one.op_type for one in record.host_ops}
    assert host == {"tanh": "Tanh", "exp": "Exp", "addf": "ReduceSum"}[op]
    if target == "cpu":
        compiled(model, target=asked["target"])


@pytest.mark.parametrize(
    ("key", "most"), [("roots_limit", 1), ("arms_limit", 1), ("scratch_bytes_limit", 64), ("scratch_bytes_limit", 4096)]
)
def test_row_18_limits_of_a_backend_are_kept(key: str, most: int, tmp_path: Path):
    arms = "arms_limit = 1\n" if key == "roots_limit" else ""
    (tmp_path / "npu.toml").write_text(f'name = "npu"\nthreads = 2\n{arms}{key} = {most}\n')
    for name in ("attention", "convolutions", "mlp"):
        record = fuseline.compile(SMALL_MODELS[name](), target=f"null:{tmp_path / 'npu.toml'}", cache=False).record
        for dispatch in record.dispatches:
            roots = sum(member.kind in ("contraction", "convolution", "depthwise") for member in dispatch.members)
            assert key != "roots_limit" or roots <= most, dispatch.label
            assert key != "arms_limit" or len(dispatch.arms) <= most, dispatch.label
            assert key != "scratch_bytes_limit" or dispatch.scratch_bytes <= most, dispatch.label
