"""What an `iree_linalg_ext.custom_op` holds is one dispatch, whatever it costs, where that is legal.

Results are compared with NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.draws import RNG

PARALLEL = "#iree_linalg_ext.iterator_type<parallel>"
ALL = "affine_map<(d0)[s0, s1, s2] -> (s0, s1)>"
"""Not read: tiles are all of an operand."""


def _custom(name: str, ins: dict[str, str], outs: dict[str, str], body: str, yielded: str) -> str:
    """A custom op of these operands, whose body knows them as `%b_NAME`."""
    operands = {**ins, **outs}
    maps = ", ".join([ALL] * len(operands))
    arguments = ", ".join(f"%b_{n}: {t}" for n, t in operands.items())

    def listed(values: dict[str, str]) -> str:
        return f"{', '.join(f'%{n}' for n in values)} : {', '.join(values.values())}"

    results = ", ".join(outs.values())
    return f"""
  {name} = iree_linalg_ext.custom_op {{indexing_maps = [{maps}], iterator_types = [{PARALLEL}]}}
      ins({listed(ins)}) outs({listed(outs)}) {{
    ^bb0({arguments}):
{body}
      iree_linalg_ext.yield {yielded} : {results}
  }} -> {results}"""


def _matmul(result: str, a: str, b: str, c: str, types: tuple[str, str, str]) -> str:
    return f"      {result} = linalg.matmul ins({a}, {b} : {types[0]}, {types[1]}) outs({c} : {types[2]}) -> {types[2]}"


def _tensor(*sizes: int | str) -> str:
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def _chain(m: int | str, k: int | str, h: int | str, n: int | str) -> str:
    """Two products, one of the other."""
    a, b, c, d, e = _tensor(m, k), _tensor(k, h), _tensor(m, h), _tensor(h, n), _tensor(m, n)
    first = _matmul("%p", "%b_a", "%b_b", "%b_c", (a, b, c))
    second = _matmul("%q", "%p", "%b_d", "%b_e", (c, d, e))
    op = _custom("%r", {"a": a, "b": b, "c": c, "d": d}, {"e": e}, f"{first}\n{second}", "%q")
    return f"func.func @main(%a: {a}, %b: {b}, %c: {c}, %d: {d}, %e: {e}) -> {e} {{{op}\n  func.return %r : {e}\n}}"


def _feeds(sizes: dict[str, tuple[int, int]]) -> dict[str, Any]:
    return {name: RNG.uniform(-1, 1, shape).astype(np.float32) for name, shape in sizes.items()}


def _check(path: Path, feeds: dict[str, Any], expected: list[Any], threads: int, dispatches: int = 1) -> None:
    program = fuseline.compile(path, threads=threads)
    assert (program.stats["dispatches"], program.stats["host_ops"]) == (dispatches, 0)
    assert fuseline.compile(path, threads=threads, target="null").stats["dispatches"] == dispatches
    for found, wanted in zip(program.run(feeds).values(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("known", [(), ("m",), ("m", "k", "h", "n"), ("h",)])
def test_a_chain_of_products(tmp_path: Path, known: tuple[str, ...], threads: int):
    sizes = {name: int(RNG.integers(1, 70)) for name in "mkhn"}
    path = tmp_path / "chain.mlir"
    path.write_text(_chain(*(sizes[name] if name in known else "?" for name in "mkhn")))
    m, k, h, n = sizes.values()
    feeds = _feeds({"a": (m, k), "b": (k, h), "c": (m, h), "d": (h, n), "e": (m, n)})
    _check(path, feeds, [(feeds["a"] @ feeds["b"] + feeds["c"]) @ feeds["d"] + feeds["e"]], threads)


def _generic(result: str, ins: str, map_: str, out: str, type_: str, of: str, add: str = "addf") -> str:
    """Adds `ins`, read through `map_`, to each element of `out`."""
    return f"""
      {result} = linalg.generic {{indexing_maps = [{map_}, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}} ins({ins} : {of}) outs({out} : {type_}) {{
      ^bb0(%x: f32, %y: f32):
        %z = arith.{add} %x, %y : f32
        linalg.yield %z : f32
      }} -> {type_}"""


@pytest.mark.parametrize("size", ["?", 24])
def test_a_product_and_what_is_computed_of_it(tmp_path: Path, size: int | str):
    t = _tensor(size, size)
    body = _matmul("%p", "%b_a", "%b_b", "%b_c", (t, t, t)) + _generic(
        "%q", "%p", "affine_map<(i, j) -> (j, i)>", "%b_e", t, t
    )
    op = _custom("%r", {"a": t, "b": t, "c": t}, {"e": t}, body, "%q")
    path = tmp_path / "turned.mlir"
    path.write_text(f"func.func @main(%a: {t}, %b: {t}, %c: {t}, %e: {t}) -> {t} {{{op}\n  func.return %r : {t}\n}}")
    feeds = _feeds(dict.fromkeys("abce", (24, 24)))
    _check(path, feeds, [(feeds["a"] @ feeds["b"] + feeds["c"]).T + feeds["e"]], 1)


@pytest.mark.parametrize("size", ["?", 40])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_and_what_is_computed_of_it(tmp_path: Path, size: int | str, axis: int):
    t, v = _tensor(size, size), _tensor(size)
    reduced = "affine_map<(i, j) -> (i)>" if axis else "affine_map<(i, j) -> (j)>"
    kinds = '["parallel", "reduction"]' if axis else '["reduction", "parallel"]'
    body = f"""
      %s = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {reduced}], iterator_types = {kinds}}}
          ins(%b_a : {t}) outs(%b_v : {v}) {{
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        linalg.yield %z : f32
      }} -> {v}""" + _generic("%q", "%s", reduced, "%b_e", t, v, "mulf")
    op = _custom("%r", {"a": t, "v": v}, {"e": t}, body, "%q")
    path = tmp_path / "sums.mlir"
    path.write_text(f"func.func @main(%a: {t}, %v: {v}, %e: {t}) -> {t} {{{op}\n  func.return %r : {t}\n}}")
    feeds = {**_feeds({"a": (40, 40), "e": (40, 40)}), "v": RNG.uniform(-1, 1, 40).astype(np.float32)}
    sums = feeds["a"].sum(axis=axis) + feeds["v"]
    _check(path, feeds, [(sums[:, None] if axis else sums) * feeds["e"]], 1)


def _two_results(size: int | str) -> str:
    t = _tensor(size, size)
    first = _matmul("%p", "%b_a", "%b_b", "%b_c", (t, t, t))
    second = _matmul("%q", "%p", "%b_d", "%b_e", (t, t, t))
    op = _custom("%r:2", {"a": t, "b": t, "d": t}, {"c": t, "e": t}, f"{first}\n{second}", "%p, %q")
    arguments = ", ".join(f"%{name}: {t}" for name in "abcde")
    return f"func.func @main({arguments}) -> ({t}, {t}) {{{op}\n  func.return %r#0, %r#1 : {t}, {t}\n}}"


@pytest.mark.parametrize("size", ["?", 32])
def test_two_results(tmp_path: Path, size: int | str):
    path = tmp_path / "two.mlir"
    path.write_text(_two_results(size))
    feeds = _feeds(dict.fromkeys("abcde", (32, 32)))
    first = feeds["a"] @ feeds["b"] + feeds["c"]
    _check(path, feeds, [first, first @ feeds["d"] + feeds["e"]], 1)


@pytest.mark.parametrize("size", ["?", 33])
def test_two_units_and_what_is_computed_between(tmp_path: Path, size: int | str):
    """Each is a dispatch; what lies between is part of one of them."""
    t = _tensor(size, size)

    def unit(name: str, a: str) -> str:
        products = (_matmul("%p", f"%b_{a}", "%b_b", "%b_c", (t, t, t)), _matmul("%q", "%p", "%b_d", "%b_e", (t, t, t)))
        return _custom(name, {a: t, "b": t, "c": t, "d": t}, {"e": t}, "\n".join(products), "%q")

    between = f"\n  %h = math.tanh %f : {t}"
    arguments = ", ".join(f"%{name}: {t}" for name in "abcde")
    path = tmp_path / "row.mlir"
    path.write_text(
        f"func.func @main({arguments}) -> {t} {{{unit('%f', 'a')}{between}{unit('%g', 'h')}\n  func.return %g : {t}\n}}"
    )
    feeds = _feeds(dict.fromkeys("abcde", (33, 33)))

    def run(x: Any) -> Any:
        return (x @ feeds["b"] + feeds["c"]) @ feeds["d"] + feeds["e"]

    assert fuseline.compile(path, target="null").stats["dispatches"] <= 2
    (found,) = fuseline.compile(path).run(feeds).values()
    np.testing.assert_allclose(found, run(np.tanh(run(feeds["a"]))), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("stage", ["input", "layout", "fusion"])
def test_a_text_of_a_stage_says_so(tmp_path: Path, stage: str):
    path, text = tmp_path / "chain.mlir", tmp_path / "stage.mlir"
    path.write_text(_chain("?", "?", "?", "?"))
    fuseline.api.emit(path, stage, target="null", output=text)
    assert fuseline.compile(text, target="null").stats["dispatches"] == 1


def test_a_plan_and_no_fusion_come_first(tmp_path: Path):
    path = tmp_path / "chain.mlir"
    path.write_text(_chain("?", "?", "?", "?"))
    program = fuseline.compile(path, target="null")
    plan = tmp_path / "apart.toml"
    ops = [line.strip() for line in program.plan.splitlines() if line.startswith("    ")]
    head = program.plan.split("[[group]]")[0]
    plan.write_text(head + "".join(f"[[group]]\nops = [{op.split(',')[0]}]\n" for op in ops))
    assert fuseline.compile(path, target="null", plan=plan).stats["dispatches"] == 2
    assert fuseline.compile(path, target="null", fusion="none").stats["dispatches"] == 2
    assert fuseline.compile(path, target="null", without_rules=["stored-rows"]).stats["dispatches"] == 2


def test_a_unit_that_cannot_be_one_is_no_error(tmp_path: Path):
    """All of the first product is read for each row of the second."""
    t = _tensor("?", "?")
    body = "\n".join(
        [
            _matmul("%p", "%b_a", "%b_b", "%b_c", (t, t, t)),
            _matmul("%o", "%b_b", "%p", "%b_e", (t, t, t)),
            _matmul("%q", "%b_a", "%o", "%b_e", (t, t, t)),
        ]
    )
    op = _custom("%r", {"a": t, "b": t, "c": t}, {"e": t}, body, "%q")
    path = tmp_path / "whole.mlir"
    path.write_text(f"func.func @main(%a: {t}, %b: {t}, %c: {t}, %e: {t}) -> {t} {{{op}\n  func.return %r : {t}\n}}")
    feeds = _feeds(dict.fromkeys("abce", (19, 19)))
    (found,) = fuseline.compile(path).run(feeds).values()
    inner = feeds["b"] @ (feeds["a"] @ feeds["b"] + feeds["c"]) + feeds["e"]
    np.testing.assert_allclose(found, feeds["a"] @ inner + feeds["e"], rtol=1e-3, atol=1e-3)
