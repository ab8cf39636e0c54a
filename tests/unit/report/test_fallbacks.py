"""A root that is worth a kernel of its own and falls to the plain loop nest says so, with each family's reason; what
has a kernel says nothing."""

from __future__ import annotations

from onnx import ModelProto

import fuseline
from fuseline.report.explain import explain_node
from tests.graphs.onnx_text import onnx_model

C, H = 8, 12


def depthwise(filter_op: str | None) -> ModelProto:
    """A depthwise convolution in three dimensions over an image with its channels first, whose filter is an input,
    turned over before where `filter_op` says how."""
    before, name = ("", "w") if filter_op is None else (f"v = {filter_op}(w)", "v")
    image = f"float[1, {C}, {H}, {H}, {H}]"
    return onnx_model(f"""({image} x, float[{C}, 1, 3, 3, 3] w) => ({image} y) {{
        {before}
        y = Conv<group = {C}, kernel_shape = [3, 3, 3], pads = [1, 1, 1, 1, 1, 1]>(x, {name})
    }}""")


def test_a_fallback_is_recorded_with_its_reasons():
    program = fuseline.compile(depthwise(None), threads=1)
    fallen = [dispatch for dispatch in program.record.dispatches if dispatch.fallback]
    assert program.stats["fallbacks"] == len(fallen) > 0
    for dispatch in program.record.dispatches:
        assert bool(dispatch.fallback) == (
            dispatch.family == "loop-nest" and any(member.kind == "depthwise" for member in dispatch.members)
        )
    for dispatch in fallen:
        assert "window" in dispatch.fallback and ": " in dispatch.fallback["window"]
        assert any(
            "no kernel of its own: window refused" in line for line in explain_node(program.record, dispatch.name).lines
        )


def test_what_has_a_kernel_of_its_own_says_nothing():
    program = fuseline.compile(depthwise("Relu"), threads=1, fusion="none")
    assert program.stats["fallbacks"] == sum(bool(dispatch.fallback) for dispatch in program.record.dispatches)
    assert all(not dispatch.fallback for dispatch in program.record.dispatches if dispatch.family != "loop-nest")


def test_a_window_inside_a_block_says_so_too():
    """Two windows in three dimensions over one channel: there are no lanes, so that both are plain loops inside the
    blocks they share."""
    image, window = "float[1, 1, 16, 16, 16]", "float[1, 1, 3, 3, 3]"
    text = f"""({image} x, {window} v, {window} w) => ({image} y) {{
        across = Conv<pads = [1, 1, 1, 1, 1, 1]>(x, v)
        down = Conv<pads = [1, 1, 1, 1, 1, 1]>(x, w)
        y = Mul(across, down)
    }}"""
    program = fuseline.compile(onnx_model(text), target="cpu", threads=1)
    windows = [dispatch for dispatch in program.record.dispatches if "blocked" in dispatch.family]
    assert windows and all("window" in dispatch.fallback for dispatch in windows)
    assert program.stats["fallbacks"] >= len(windows)
