"""The systolic NPU of examples/ as a target from outside: loaded by its path and as an installed package; its listings
compute what they say, on odd sizes; its dispatches are padded, and hold the elementwise ops."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.analysis.cost import flops
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.cli.main import main
from fuseline.compilation import outlined
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.flow import ExecutableOp
from fuseline.targets import create_target
from fuseline.testing import GRAPHS, check_target
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "systolic-npu"
TARGET = EXAMPLE / "systolic_npu"
SIDE = 16


def _normal(*shape: int) -> Any:
    return (0.3 * RNG.standard_normal(shape)).astype(np.float32)


def _odd(low: int = 3, high: int = 40) -> int:
    return int(RNG.choice([size for size in range(low, high) if size % SIDE]))


def _package() -> ModuleType:
    """The package as the target was loaded from its path."""
    inner = getattr(create_target(str(TARGET)), "target")  # noqa: B009
    return sys.modules[type(inner).__module__.rpartition(".")[0]]


def _matmul() -> onnx.ModelProto:
    m, k, n = _odd(), _odd(), _odd()
    text = f"(float[{m}, {k}] x) => (float[{m}, {n}] z) {{ a = MatMul(x, w) b = Add(a, c) z = Relu(b) }}"
    return onnx_model(text, {"w": _normal(k, n), "c": _normal(n)})


def _batched() -> onnx.ModelProto:
    b, m, k, n = 3, _odd(), _odd(), _odd()
    text = f"(float[{b}, {m}, {k}] x, float[{b}, {k}, {n}] y) => (z) {{ z = MatMul(x, y) }}"
    return onnx_model(text)


def _vector() -> onnx.ModelProto:
    k, n = _odd(), _odd()
    return onnx_model(f"(float[1, {k}] x) => (z) {{ z = MatMul(x, w) }}", {"w": _normal(k, n)})


def _convolution() -> onnx.ModelProto:
    h, w, channels, out = _odd(6, 20), _odd(6, 20), _odd(3, 20), _odd(3, 40)
    stride, dilation, pad = (int(RNG.integers(1, 3)) for _ in range(3))
    text = f"""(float[1, {channels}, {h}, {w}] x) => (z) {{
        a = Conv<pads = [{pad}, {pad}, {pad}, {pad}], strides = [{stride}, {stride}],
                 dilations = [{dilation}, {dilation}]>(x, w, b)
        z = Clip(a, lo, hi)
    }}"""
    bounds = {"lo": np.float32(0), "hi": np.float32(6)}
    return onnx_model(text, {"w": _normal(out, channels, 3, 3), "b": _normal(out), **bounds})


def _pointwise() -> onnx.ModelProto:
    h, w, channels, out = _odd(5, 14), _odd(5, 14), _odd(), _odd()
    text = f"""(float[1, {channels}, {h}, {w}] x, float[1, {out}, {h}, {w}] y) => (z) {{
        a = Conv(x, w, b) z = Add(a, y) }}"""
    return onnx_model(text, {"w": _normal(out, channels, 1, 1), "b": _normal(out)})


def _grouped() -> onnx.ModelProto:
    text = "(float[1, 12, 9, 7] x) => (z) { z = Conv<group = 3, pads = [1, 1, 1, 1]>(x, w) }"
    return onnx_model(text, {"w": _normal(15, 4, 3, 3)})


def _weights_on_the_left() -> onnx.ModelProto:
    out, channels, h, w = _odd(), _odd(), _odd(3, 12), _odd(3, 12)
    text = f'(float[{channels}, {h}, {w}] x) => (z) {{ z = Einsum<equation = "oc,chw->ohw">(w, x) }}'
    return onnx_model(text, {"w": _normal(out, channels)})


MODELS = (_matmul, _batched, _vector, _convolution, _pointwise, _grouped, _weights_on_the_left)


def _entries(model: onnx.ModelProto, variant: str) -> Iterator[DispatchView]:
    module, _ = outlined(model, CompileOptions(target=f"{TARGET}:{variant}"))
    for op in module.ops:
        if isinstance(op, ExecutableOp):
            yield DispatchView(entry_of(op))


def _rows(model: onnx.ModelProto, variant: str = "4x4") -> list[dict[str, Any]]:
    """What the listing says of each dispatch."""
    program = fuseline.compile(model, target=f"{TARGET}:{variant}", dedup="none")
    lines = program.to_bytes().decode().splitlines()
    return [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("dispatch ")]


# what the listing computes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["4x4", "2x3", "1x1-untiled", "3x2-untiled"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_programs_of_all_cores_compute_the_product(model: Callable[[], onnx.ModelProto], variant: str):
    """Each point of the product is met once by one core, and the tiles add up to it."""
    npu = _package()
    machine = npu.machine(variant)
    seen = 0
    for view in _entries(model(), variant):
        plan = npu.plan.plan_of(view.entry, machine)
        _require_consistent(plan, view, machine)
        products = [op for op in view.members if npu.roles.roles_of(op) is not None]
        if plan.facts["unit"] != "array":
            assert not products
            continue
        seen += 1
        simulation = _Simulation(npu, view, products[0], plan, machine)
        assert (simulation.met == 1).all()
        assert np.allclose(simulation.result, simulation.product(simulation.whole()), atol=1e-4)
    assert seen == 1


class _Simulation:
    """Runs the MATMULs of all cores on random operands, tile by tile."""

    def __init__(self, npu: ModuleType, view: DispatchView, root: Any, plan: Any, machine: Any) -> None:
        self.npu, self.op, self.facts, self.machine = npu, StructuredOp(root), plan.facts, machine
        self.extents = npu.roles.extents_of(root, view.shapes)
        self.operands = [_normal(*view.shapes.dims(value)) for value in self.op.inputs]  # pyright: ignore[reportArgumentType]
        self.result = np.zeros([int(size) for size in view.shapes.dims(root.results[0])])  # pyright: ignore[reportArgumentType]
        self.met = np.zeros(self.extents, int)
        for row in range(plan.facts["grid"][0]):
            for column in range(plan.facts["grid"][1]):
                self._run(plan.program, {"row": row, "column": column}, {})

    def whole(self) -> dict[int, range]:
        """The box of all points."""
        return {loop: range(extent) for loop, extent in enumerate(self.extents)}

    def _run(self, program: Any, core: dict[str, int], box: dict[int, range]) -> None:
        for item in program:
            if isinstance(item, self.npu.program.Loop):
                first = core[item.across] * item.trips if item.across else 0
                for tile in range(first, min(first + item.trips, item.total)):
                    start = tile * item.step
                    inside = range(start, min(start + item.step, self.extents[item.loop]))
                    self._run(item.body, core, {**box, item.loop: inside})
            elif item.code == "MATMUL":
                tile_box = {**self.whole(), **box}
                rows, columns, sums = self._sides(tile_box)
                assert rows <= item.rows and columns <= SIDE and sums <= SIDE
                self.met[np.ix_(*tile_box.values())] += 1
                self.result += self.product(tile_box)

    def _sides(self, box: dict[int, range]) -> tuple[int, int, int]:
        roles = self.npu.roles.roles_of(self.op.op)
        sizes = [[len(box[loop]) for loop in loops] for loops in (roles.rows, roles.columns, roles.channels)]
        return prod(sizes[0]), prod(sizes[1]), prod(sizes[2])

    def product(self, box: dict[int, range]) -> Any:
        """The sums of the points of a box, where the result has them."""
        at = np.meshgrid(*[np.array(box[loop]) for loop in sorted(box)], indexing="ij", sparse=True)
        a, b = (
            operand[tuple(expr.eval(at, []) for expr in map_.results)]  # pyright: ignore[reportArgumentType]
            for operand, map_ in zip(self.operands, self.op.input_maps, strict=True)
        )
        result = np.zeros_like(self.result)
        coordinates = tuple(expr.eval(at, []) for expr in self.op.output_maps[0].results)  # pyright: ignore[reportArgumentType]
        points = np.broadcast_to(a * b, [len(box[loop]) for loop in sorted(box)])
        np.add.at(result, tuple(np.broadcast_to(one, points.shape) for one in coordinates), points)
        return result


def _require_consistent(plan: Any, view: DispatchView, machine: Any) -> None:
    """What holds for every listing: buffers fit, nothing is left out of what is moved and computed."""
    facts = plan.facts
    spent = facts["cycles"]
    assert 0 < facts["memory"] <= machine.memory
    assert all(1 <= used <= there for used, there in zip(facts["grid"], (machine.rows, machine.columns), strict=True))
    assert spent["dispatch"] >= machine.launch + max(spent[unit] for unit in ("array", "dma", "vector", "scalar"))
    bytes_of = _package().roles.tensor_bytes
    assert facts["stored"] >= sum(bytes_of(value, view.shapes) for value in view.results)
    assert facts["loaded"] >= max((bytes_of(value, view.shapes) for value in view.tensors), default=0) // 2
    if facts["unit"] == "array":
        roots = [op for op in view.members if kind(op) in (Kind.CONTRACTION, Kind.CONVOLUTION)]
        assert facts["macs"] >= max(int(flops(op, view.shapes)) for op in roots) // 2  # pyright: ignore[reportArgumentType]
        padded = prod(prod(facts[name]) for name in "mnk")
        assert facts["macs"] >= padded and spent["array"] * facts["grid"][0] * facts["grid"][1] * SIDE**2 >= padded


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_tiled_products_fill_the_arrays_and_the_grid(rows: int):
    for model in (_matmul, _convolution, _pointwise):
        (row,) = [row for row in _rows(model(), f"{rows}x4") if row["unit"] == "array"]
        assert row["n"][-1] % SIDE == row["k"][-1] % SIDE == 0
        assert row["macs"] == prod(prod(row[name]) for name in "mnk")
        image = len(row["m"]) > 1
        assert row["m"][-1] % (4 if image else 4 * rows) == 0 and row["m"][-2 if image else -1] % rows == 0
        assert row["grid"][0] == rows and row["inside"] and not row["only_moves"]
        (plain,) = [row for row in _rows(model(), f"{rows}x4-untiled") if row["unit"] == "array"]
        assert plain["macs"] > 0


def test_more_cores_take_fewer_cycles():
    model = _pointwise()
    cycles = [sum(row["cycles"]["dispatch"] for row in _rows(model, f"{grid}")) for grid in ("1x1", "2x2", "4x4")]
    assert cycles == sorted(cycles, reverse=True) and cycles[0] > cycles[-1]


# what becomes a dispatch ----------------------------------------------------------------------------------------------


def _deeplab(side: int, channels: int) -> onnx.ModelProto:
    """An image through inverted residuals, a pyramid of dilated convolutions and a Resize, with transposes around as
    channels-last exporters write them."""
    wide = 3 * channels
    text = f"""(float[1, {side}, {side}, 3] image) => (z) {{
        x = Transpose<perm = [0, 3, 1, 2]>(image)
        s = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w0, b0) t = Clip(s, lo, hi)
        e = Conv(t, w1, b1) f = Clip(e, lo, hi)
        d = Conv<group = {wide}, pads = [1, 1, 1, 1]>(f, w2, b2) g = Clip(d, lo, hi)
        p = Conv(g, w3, b3) r = Add(p, t)
        a1 = Conv(r, w4, b4) c1 = Relu(a1)
        a2 = Conv<pads = [2, 2, 2, 2], dilations = [2, 2]>(r, w5, b4) c2 = Relu(a2)
        a3 = GlobalAveragePool(r) a4 = Conv(a3, w4, b4) a5 = Relu(a4)
        c3 = Expand(a5, whole)
        c = Concat<axis = 1>(c1, c2, c3)
        j = Conv(c, w6, b6)
        h = Relu(j)
        u = Transpose<perm = [0, 2, 3, 1]>(h)
        z = Sigmoid(u)
    }}"""
    small = -(-side // 2)
    shapes = {
        "w0": (channels, 3, 3, 3),
        "w1": (wide, channels, 1, 1),
        "w2": (wide, 1, 3, 3),
        "w3": (channels, wide, 1, 1),
    }
    shapes |= {"w4": (10, channels, 1, 1), "w5": (10, channels, 3, 3), "w6": (21, 30, 1, 1)}
    shapes |= {"b0": (channels,), "b1": (wide,), "b2": (wide,), "b3": (channels,), "b4": (10,), "b6": (21,)}
    fixed = {"lo": np.float32(0), "hi": np.float32(6), "whole": np.array([1, 10, small, small], np.int64)}
    model = onnx_model(text, {**{name: _normal(*shape) for name, shape in shapes.items()}, **fixed})
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    return model


def test_elementwise_ops_are_inside_and_nothing_that_moves_stands_alone():
    rows = _rows(_deeplab(_odd(21, 40), _odd(5, 30)))
    assert not any(row["only_moves"] for row in rows)
    inside = {name for row in rows for name in row["inside"]}
    assert {name.partition("_")[0] for name in inside} >= {"Clip", "Relu", "Add"}
    on_arrays = [row for row in rows if row["unit"] == "array"]
    assert len(on_arrays) == 7 and all(row["n"][-1] % SIDE == 0 for row in on_arrays)
    types = [{name.partition("_")[0] for name in row["node"]} for row in rows]
    assert all(kinds & {"Conv", "GlobalAveragePool", "Sigmoid"} for kinds in types), types


VETOED = {
    "one-product": "(float[16, 32] x) => (z) { a = MatMul(x, w) z = MatMul(a, w) }",
    "no-prologue": "(float[16, 32] x) => (z) { a = Relu(x) z = MatMul(a, w) }",
    "one-pass": "(float[16, 32] x) => (z) { a = MatMul(x, w) z = ReduceSum<keepdims = 1>(a, last) }",
    "scalar-core": "(float[16, 32] x) => (z) { a = MatMul(x, w) z = Tanh(a) }",
}


@pytest.mark.parametrize("code", [*VETOED, "dma-channels"])
def test_each_veto_is_on_record(code: str):
    added = "(float[16, 32] x, {}) => (z) {{ s0 = MatMul(x, w) {} z = Relu(s8) }}".format(
        ", ".join(f"float[16, 32] y{i}" for i in range(8)), " ".join(f"s{i + 1} = Add(s{i}, y{i})" for i in range(8))
    )
    model = onnx_model(VETOED.get(code, added), {"w": _normal(32, 32), "last": np.array([1], np.int64)})
    record = fuseline.compile(model, target=str(TARGET)).record
    refused = [one for one in record.decisions if one.code == "target"]
    assert any(one.detail.startswith(f"{code}: ") for one in refused), [one.detail for one in record.decisions]


def test_doubles_run_on_the_host():
    model = onnx_model("(double[5, 7] x) => (z) { z = Exp(x) }")
    (op,) = fuseline.compile(model, target=str(TARGET)).record.host_ops
    assert "no unit computes in f64" in op.reason


# the package ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "graphs"),
    [("4x4", GRAPHS), ("1x3", ("depthwise", "symbolic")), ("2x2-untiled", ("convolution", "loop"))],
)
def test_it_keeps_the_contract(variant: str, graphs: tuple[str, ...]):
    assert check_target(f"{TARGET}:{variant}", graphs=graphs, seed=int(RNG.integers(1 << 30))) == []


@pytest.mark.parametrize("variant", ["0x4", "4", "4x4x4", "100x1", "4x4-tiled", "x"])
def test_a_variant_that_there_is_not_is_refused(variant: str):
    with pytest.raises(FuselineError) as caught:
        create_target(f"{TARGET}:{variant}")
    assert caught.value.code == "E0501" and repr(variant) in caught.value.message


def test_it_is_a_target_where_its_package_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(TARGET, tmp_path / "systolic_npu")
    info = tmp_path / "systolic_npu-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (group,) = project["entry-points"].items()
    lines = [f"[{group[0]}]", *(f"{name} = {value}" for name, value in group[1].items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    model = _matmul()
    installed = fuseline.compile(model, target="systolic-npu:2x2")
    assert installed.record.target == "systolic-npu:2x2"
    assert installed.to_bytes() == fuseline.compile(model, target=f"{TARGET}:2x2").to_bytes()


def test_commands_write_and_print_listings(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.onnx"
    onnx.save(_matmul(), path)
    assert main(["compile", str(path), "--target", f"{TARGET}:2x2"]) == 0
    text = path.with_suffix(".npu").read_text()
    assert "MATMUL" in text and text.splitlines()[-1].startswith("total ")
    capsys.readouterr()
    assert main(["compile", str(path), "--target", f"{TARGET}:2x2", "--emit", "asm"]) == 0
    listed = capsys.readouterr().out
    assert "; dispatch" in listed and "MATMUL" in listed
    assert main(["compile", str(path), "--target", f"{TARGET}:2x2", "--emit", "llvm"]) == 2
    assert main(["run", str(path), "--target", str(TARGET)]) == 1
    assert "E0305" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_dispatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    import dispatch_table  # pyright: ignore[reportMissingImports]

    path = tmp_path / "m.onnx"
    model = _deeplab(29, 12)
    onnx.save(model, path)
    lines = str(dispatch_table.table(str(path), "2x2")).splitlines()
    assert len(lines) == len(_rows(model, "2x2")) + 4
    assert lines[2].startswith("| 0 | Conv_s | array | 15·15 x 12 x 3·3·3 | 16·16 x 16 x 3·3·16 | 2 x 1 |")
    assert "Clip" in lines[2] and "0 dispatches that only pad" in lines[-1]
