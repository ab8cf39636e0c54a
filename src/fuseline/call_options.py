"""The arguments of `fuseline.compile` and its like, as the compiler takes them: a model, shapes, and options with what
a tuned plan and tuning records say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fuseline.arguments import path_option, wrong
from fuseline.errors import FuselineError
from fuseline.runtime.artifact import ARTIFACT_SUFFIX

if TYPE_CHECKING:
    import onnx

    from fuseline.compile_options import CompileOptions
    from fuseline.ir.kernel_choice import KernelChoices


Model: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto"


Shape: TypeAlias = "str | int | Sequence[int]"


def source_of(model: Model) -> Path | bytes | onnx.ModelProto:
    """What the pipeline takes: a path, or a model in memory. Raises FuselineError (E0501) for anything else, an
    artifact included."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model)
    if isinstance(model, str | os.PathLike):
        path = path_option("model", model)
        if path.suffix == ARTIFACT_SUFFIX:
            raise FuselineError(
                "E0501", "an artifact is compiled already", node=str(path), hint="fuseline.load(path) loads it"
            )
        return path
    if not hasattr(model, "graph") or not hasattr(model, "SerializeToString"):
        raise wrong("model", model, "a path, the bytes of an ONNX model or an onnx.ModelProto")
    return model


def shape_option(shape: Shape) -> int | tuple[int, ...]:
    """A shape as the pipeline takes it: all extents of an input, one extent of a symbol, or its bounds. Raises
    FuselineError E0501.

    >>> shape_option("1x3x224x224"), shape_option("1..512"), shape_option("128"), shape_option([2, 3])
    ((1, 3, 224, 224), (1, 512), 128, (2, 3))
    """
    if not isinstance(shape, str):
        return _numbers(shape)
    sizes = shape.split(".." if ".." in shape else "x")
    if not all(size.isdecimal() for size in sizes):
        raise FuselineError("E0501", f"no shape: {shape!r}", hint="write 1x3x224x224, 128 or 1..512")
    return int(shape) if len(sizes) == 1 else tuple(int(size) for size in sizes)


def _numbers(shape: Any) -> int | tuple[int, ...]:
    try:
        return index(shape) if hasattr(shape, "__index__") else tuple(index(size) for size in shape)
    except TypeError as error:
        raise FuselineError(
            "E0501", f"no shape: {shape!r}", hint="give whole numbers: (1, 3, 224, 224), 128 or '1..512'"
        ) from error


def compile_options(**choices: Any) -> CompileOptions:
    """The options behind the arguments of `compile`, with what a tuned plan says where they say nothing, and what
    tuning records ask where they say so; raises FuselineError (E0501) for a wrong one."""
    from fuseline.compile_options import CompileOptions

    given = {name: value for name, value in choices.items() if value is not None or name not in _UNSAID}
    given["fuel"] = fuel_option(given.get("fuel"))
    options = CompileOptions(**_with_plan(given))
    shapes = {name: shape_option(shape) for name, shape in (options.shapes or {}).items()}
    return replace(options, shapes=shapes, recorded=_recorded(options) if options.tuned else options.recorded)


def _recorded(options: CompileOptions) -> KernelChoices:
    """What tuning records ask of kernels. Raises E0705 for a file of them that cannot be read."""
    from fuseline.tuning.records import choices_for, compile_kind

    kind = compile_kind(options.target, options.threads, options.numerics)
    return choices_for(kind, options.tuned if isinstance(options.tuned, Path) else None)


_UNSAID = ("dedup", "fusion")
"""Arguments whose None says nothing: a tuned plan may speak of them."""


_TUNED = b"[tuned"
"""What a plan without choices has nowhere: such a plan is not read before the compile asks for it."""


def _with_plan(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the choices of their plan; a plan that cannot be read is for the compile to refuse."""
    plan = given.get("plan")
    try:
        text = Path(plan).read_bytes() if isinstance(plan, str | os.PathLike) else b""
    except (OSError, ValueError):  # a name that is too long, or has a zero byte in it
        return given
    if _TUNED not in text:
        return given
    from fuseline.passes.fusion.plan import read_plan
    from fuseline.passes.fusion.tuned_choices import with_choices

    tuned = read_plan(path_option("plan", plan)).tuned
    if tuned is None:
        return given
    merged, told = with_choices(given, tuned)
    return {**merged, "plan_remarks": told}


def fuel_option(fuel: Any) -> Any:
    """Fuel as the pipeline takes it. Raises FuselineError (E0501) for a kind that there is not, or no count.

    >>> fuel_option({"fusion": 12}).left("fusion"), fuel_option(None)
    (True, None)
    """
    from fuseline.ir.fuel import KINDS, Fuel

    if fuel is None or isinstance(fuel, Fuel):
        return fuel
    kinds = dict(fuel) if isinstance(fuel, Mapping) else {}
    if not kinds or not all(kind in KINDS and type(count) is int and count >= 0 for kind, count in kinds.items()):
        raise wrong("fuel", fuel, f"a count for some of {', '.join(KINDS)}, such as {{'fusion': 12}}")
    return Fuel(kinds)


def refuse_choices(choices: Mapping[str, Any]) -> None:
    """Raises FuselineError (E0501) for the first option given with an artifact."""
    for name in choices:
        hint = "give it to fuseline.compile, with the model"
        raise FuselineError("E0501", f"{name} is for compiling, and an artifact is compiled already", hint=hint)
