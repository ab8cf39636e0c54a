"""Programs of one dispatch region each, as MLIR text, from outlining on: compiled, run, and run on the interpreter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from fuseline.compilation import lower
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.registry import load_pass
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord, decode
from fuseline.runtime import Artifact, Session
from fuseline.targets.cpu.target import CpuTarget
from fuseline.targets.interpreter.target import InterpreterTarget

Array = NDArray[Any]
PASSES = ("generalize-named-ops", "outline-executables", "deduplicate-executables", "record-dispatches")


def program(
    inputs: Mapping[str, Sequence[int | str]], body: str, results: Mapping[str, str], *, outside: str = ""
) -> str:
    """`@main` with `inputs` by name; `body` is the region, `results` its returned values with their types; `outside`
    comes before it.

    A size that is a name is only known at run time; `outside` may ask for it with `tensor.dim`.
    """
    arguments = ", ".join(
        f"%{name}: tensor<{_shape(shape)}xf32> {{{_attributes(name, shape)}}}" for name, shape in inputs.items()
    )
    types, values = ", ".join(results.values()), ", ".join(results)
    plain = re.sub(r"\{.*?\}", "", types)
    named = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    count = f":{len(results)}" if len(results) > 1 else ""
    return f"""
func.func @main({arguments}) -> ({plain}) {{
  {outside}
  %r{count} = flow.dispatch.region -> ({types}) {{
    {body}
    flow.return {values} : {plain}
  }}
  func.return {named} : {plain}
}}"""


def elementwise(name: str, inputs: Sequence[str], shape: str, body: str, *, sizes: str = "") -> str:
    """`%name`: `body` makes `%v` of `%a0`, `%a1`, .., the elements of `inputs`, all of `shape` (such as `4x5`); `sizes`
    are those that are `?`."""
    rank = shape.count("x") + 1
    dims, loops = ", ".join(f"d{i}" for i in range(rank)), ", ".join(['"parallel"'] * rank)
    type_, map_ = f"tensor<{shape}xf32>", f"affine_map<({dims}) -> ({dims})>"
    return f"""
    %e_{name}_ = tensor.empty({sizes}) : {type_}
    %{name} = linalg.generic {{indexing_maps = [{", ".join([map_] * (len(inputs) + 1))}], iterator_types = [{loops}]}}
      ins({", ".join(f"%{one}" for one in inputs)} : {", ".join([type_] * len(inputs))}) outs(%e_{name}_ : {type_}) {{
    ^bb0({", ".join(f"%a{i}: f32" for i in range(len(inputs)))}, %o: f32):
      {body}
      linalg.yield %v : f32
    }} -> {type_}"""


def _shape(shape: Sequence[int | str]) -> str:
    return "x".join(str(size) if isinstance(size, int) else "?" for size in shape)


def _attributes(name: str, shape: Sequence[int | str]) -> str:
    dims = ", ".join(f'"{size}"' for size in shape)
    return f'fuseline.name = "{name}"' + (
        f", fuseline.dims = [{dims}]" if any(isinstance(size, str) for size in shape) else ""
    )


def outlined(text: str, resources: Mapping[str, Array] | None = None) -> tuple[ModuleOp, CompilerContext]:
    """The module after outlining, and its context."""
    ctx = new_context()
    ctx.resources.update(resources or {})
    module = parse_module(text, ctx)
    for name in PASSES:
        load_pass(name)().apply(ctx, module)
    module.verify()
    return module, ctx


def compiled(text: str, threads: int = 1, resources: Mapping[str, Array] | None = None) -> Artifact:
    """The artifact; small as the program is, all `threads` share it."""
    module, ctx = outlined(text, resources)
    artifact = lower(module, ctx, CompileOptions(threads=threads), CpuTarget(threads=threads))
    return artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0))


def interpreted(text: str, feeds: Mapping[str, Array], resources: Mapping[str, Array] | None = None) -> list[Array]:
    """The results by the interpreter, which runs the dispatch as the MLIR says."""
    module, ctx = outlined(text, resources)
    made: Any = lower(module, ctx, CompileOptions(target="interpreter"), InterpreterTarget())
    return list(made.session(1).run(feeds).values())


def record_of(artifact: Artifact) -> CompileRecord:
    """What the compile wrote down."""
    return decode(artifact.records)


def check(
    text: str,
    feeds: Mapping[str, Array],
    expected: Sequence[Array] | None = None,
    resources: Mapping[str, Array] | None = None,
) -> Artifact:
    """Run at 1, 2 and 3 threads, twice each, and compare with the interpreter and with `expected`; answers the artifact
    for two threads."""
    wanted = interpreted(text, feeds, resources)
    for one, other in zip(wanted, expected or wanted, strict=True):
        close(one, other)
    artifacts = {threads: compiled(text, threads, resources) for threads in (1, 2, 3)}
    for artifact in artifacts.values():
        session = Session(artifact)
        for _ in range(2):
            for found, want in zip(session.run(feeds).values(), wanted, strict=True):
                close(found, want)
    return artifacts[2]


def close(found: Array, expected: Array) -> None:
    """Equal up to `2**-18` of the largest magnitude."""
    assert found.shape == expected.shape
    scale = float(np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.0**-18 * max(scale, 1e-30))


def random(shape: Sequence[int], seed: int) -> Array:
    """Standard normal numbers, the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
