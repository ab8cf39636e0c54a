"""What onnx.shape_inference gets wrong about the sizes of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.window_positions import window_positions
from fuseline.ir.dim import Dim, product, upper_bound

Sizes = Sequence["Dim | None"]

_POOLINGS = ("AveragePool", "LpPool", "MaxPool")
_SELECTING = ("Compress", "NonZero", "Unique")


def corrected(op_type: str, attributes: Mapping[str, ir.Attr], source: Value | None, found: Sizes) -> Sizes:
    """The sizes of a result of a standard operator that reads `source` first, given those that were inferred.

    `NonZero` of a tensor without dimensions counts it as a line of one. `STFT` forgets `onesided` where a window and
    the length of frames are given. The last window of a pooling in ceil mode may not start in the padding at the end.
    """
    if op_type == "NonZero" and found[0] == 0:
        return [1, None]
    if op_type == "STFT" and len(found) == 4:
        return [*found[:2], None, found[3]]
    if op_type in _POOLINGS and source is not None and source.dims is not None and _rounds_up(attributes):
        return _pooled(attributes, source.dims)
    return found


def most_of(op_type: str, attributes: Mapping[str, ir.Attr], source: Value | None) -> int | None:
    """The most that a size can be which only the content of `source`, read first by a standard operator, tells: what is
    selected from all elements is no more than they are. None where that is not known."""
    if op_type not in _SELECTING or "axis" in attributes or source is None or source.dims is None:
        return None
    return upper_bound(product(source.dims))


def _rounds_up(attributes: Mapping[str, ir.Attr]) -> bool:
    stated = "auto_pad" not in attributes or attributes["auto_pad"].as_string() == "NOTSET"
    return stated and "ceil_mode" in attributes and attributes["ceil_mode"].as_int() != 0


def _pooled(attributes: Mapping[str, ir.Attr], image: Sequence[Dim]) -> Sizes:
    spatial = len(image) - 2
    kernel = _numbers(attributes, "kernel_shape", [1] * spatial)
    strides, dilations = (_numbers(attributes, name, [1] * spatial) for name in ("strides", "dilations"))
    pads = _numbers(attributes, "pads", [0] * 2 * spatial)
    positions = (
        window_positions(size, (extent - 1) * dilation + 1, stride, (low, high), ceil=True)[0]
        for size, extent, stride, dilation, low, high in zip(
            image[2:], kernel, strides, dilations, pads[:spatial], pads[spatial:], strict=True
        )
    )
    return [*image[:2], *positions]


def _numbers(attributes: Mapping[str, ir.Attr], name: str, default: list[int]) -> Sequence[int]:
    return attributes[name].as_ints() if name in attributes else default
