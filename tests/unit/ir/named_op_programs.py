"""One small program per named linalg op, as iree-opt 3.13 prints it."""

from __future__ import annotations


def _named(op: str, ins: list[str], out: str, attributes: str = "") -> str:
    args = ", ".join(f"%a{i}: {t}" for i, t in enumerate(ins))
    names = ", ".join(f"%a{i}" for i in range(len(ins)))
    return f"""func.func @main({args}, %o: {out}) -> {out} {{
  %r = linalg.{op} {attributes} ins({names} : {", ".join(ins)}) outs(%o : {out}) -> {out}
  return %r : {out}
}}"""


def _tensor(shape: str, element: str = "f32") -> str:
    return f"tensor<{shape}x{element}>" if shape else f"tensor<{element}>"


def _maps(loops: str, *operands: str) -> str:
    return "indexing_maps = [" + ", ".join(f"affine_map<({loops}) -> ({operand})>" for operand in operands) + "]"


def _window(count: int) -> str:
    return f"{{dilations = dense<1> : tensor<{count}xi64>, strides = dense<2> : tensor<{count}xi64>}}" if count else ""


_CONTRACTIONS = {
    "dot": (["4", "4"], ""),
    "vecmat": (["4", "4x5"], "5"),
    "matvec": (["4x5", "5"], "4"),
    "batch_matvec": (["2x4x5", "2x5"], "2x4"),
    "batch_vecmat": (["2x4", "2x4x5"], "2x5"),
    "matmul": (["4x5", "5x6"], "4x6"),
    "batch_matmul": (["2x4x5", "2x5x6"], "2x4x6"),
    "batch_reduce_matmul": (["2x4x5", "2x5x6"], "4x6"),
    "mmt4d": (["2x3x4x5", "6x3x7x5"], "2x6x4x7"),
    "batch_mmt4d": (["2x2x3x4x5", "2x6x3x7x5"], "2x2x6x4x7"),
}

_WINDOWS = {
    "conv_1d": ("9", "3", "7", 0),
    "conv_2d": ("9x9", "3x3", "7x7", 0),
    "conv_3d": ("5x5x5", "3x3x3", "3x3x3", 0),
    "conv_1d_nwc_wcf": ("1x9x4", "3x4x5", "1x4x5", 1),
    "conv_1d_ncw_fcw": ("1x4x9", "5x4x3", "1x5x4", 1),
    "conv_2d_nhwc_hwcf": ("1x9x9x4", "3x3x4x5", "1x4x4x5", 2),
    "conv_2d_nhwc_fhwc": ("1x9x9x4", "5x3x3x4", "1x4x4x5", 2),
    "conv_2d_nchw_fchw": ("1x4x9x9", "5x4x3x3", "1x5x4x4", 2),
    "conv_2d_ngchw_fgchw": ("1x2x4x9x9", "5x2x4x3x3", "1x2x5x4x4", 2),
    "conv_2d_ngchw_gfchw": ("1x2x4x9x9", "2x5x4x3x3", "1x2x5x4x4", 2),
    "conv_2d_nhwgc_gfhwc": ("1x9x9x2x4", "2x5x3x3x4", "1x4x4x2x5", 2),
    "conv_3d_ndhwc_dhwcf": ("1x5x5x5x2", "3x3x3x2x3", "1x2x2x2x3", 3),
    "conv_3d_ncdhw_fcdhw": ("1x2x5x5x5", "3x2x3x3x3", "1x3x2x2x2", 3),
    "depthwise_conv_1d_nwc_wc": ("1x9x4", "3x4", "1x4x4", 1),
    "depthwise_conv_1d_ncw_cw": ("1x4x9", "4x3", "1x4x4", 1),
    "depthwise_conv_1d_nwc_wcm": ("1x9x4", "3x4x2", "1x4x4x2", 1),
    "depthwise_conv_2d_nhwc_hwc": ("1x9x9x4", "3x3x4", "1x4x4x4", 2),
    "depthwise_conv_2d_nchw_chw": ("1x4x9x9", "4x3x3", "1x4x4x4", 2),
    "depthwise_conv_2d_nhwc_hwcm": ("1x9x9x4", "3x3x4x2", "1x4x4x4x2", 2),
    "depthwise_conv_3d_ndhwc_dhwc": ("1x5x5x5x2", "3x3x3x2", "1x2x2x2x2", 3),
    "depthwise_conv_3d_ncdhw_cdhw": ("1x2x5x5x5", "2x3x3x3", "1x2x2x2x2", 3),
    "depthwise_conv_3d_ndhwc_dhwcm": ("1x5x5x5x2", "3x3x3x2x2", "1x2x2x2x2x2", 3),
    "pooling_nwc_sum": ("1x9x4", "3", "1x4x4", 1),
    "pooling_nwc_max": ("1x9x4", "3", "1x4x4", 1),
    "pooling_nwc_min": ("1x9x4", "3", "1x4x4", 1),
    "pooling_ncw_sum": ("1x4x9", "3", "1x4x4", 1),
    "pooling_ncw_max": ("1x4x9", "3", "1x4x4", 1),
    "pooling_nhwc_sum": ("1x9x9x4", "3x3", "1x4x4x4", 2),
    "pooling_nhwc_max": ("1x9x9x4", "3x3", "1x4x4x4", 2),
    "pooling_nhwc_min": ("1x9x9x4", "3x3", "1x4x4x4", 2),
    "pooling_nchw_sum": ("1x4x9x9", "3x3", "1x4x4x4", 2),
    "pooling_nchw_max": ("1x4x9x9", "3x3", "1x4x4x4", 2),
    "pooling_ndhwc_sum": ("1x5x5x5x2", "3x3x3", "1x2x2x2x2", 3),
    "pooling_ndhwc_max": ("1x5x5x5x2", "3x3x3", "1x2x2x2x2", 3),
    "pooling_ndhwc_min": ("1x5x5x5x2", "3x3x3", "1x2x2x2x2", 3),
}

_UNSIGNED_POOLINGS = {name: f"pooling_{name}_unsigned" for name in ("nwc_max", "nwc_min", "nhwc_max", "nhwc_min")}

_QUANTIZED = (
    "conv_2d_nhwc_hwcf",
    "conv_2d_nhwc_fhwc",
    "conv_2d_nchw_fchw",
    "conv_2d_ngchw_gfchw",
    "conv_2d_nhwgc_gfhwc",
    "conv_3d_ndhwc_dhwcf",
    "depthwise_conv_2d_nhwc_hwc",
    "depthwise_conv_2d_nhwc_hwcm",
)

_ELEMENTWISE = {
    1: "exp log abs ceil floor negf reciprocal round sqrt rsqrt square tanh erf".split(),
    2: "add sub mul div max_signed min_signed powf".split(),
}

_WRITTEN = {
    "softmax": _named("softmax", [_tensor("4x5")], _tensor("4x5"), "dimension(1)"),
    "map_short": """func.func @main(%a: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.map { math.exp } ins(%a : tensor<8xf32>) outs(%o : tensor<8xf32>)
  return %r : tensor<8xf32>
}""",
    "map": """func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.map ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%o : tensor<8xf32>)
    (%in: f32, %in_0: f32, %init: f32) {
      %0 = arith.addf %in, %in_0 : f32
      linalg.yield %0 : f32
    }
  return %r : tensor<8xf32>
}""",
    "reduce_short": """func.func @main(%a: tensor<4x8xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [1]
  return %r : tensor<4xf32>
}""",
    "reduce": """func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %o: tensor<8xf32>, %p: tensor<8xf32>)
        -> (tensor<8xf32>, tensor<8xf32>) {
  %r:2 = linalg.reduce ins(%a, %b : tensor<4x8xf32>, tensor<4x8xf32>)
      outs(%o, %p : tensor<8xf32>, tensor<8xf32>) dimensions = [0]
    (%in: f32, %in_0: f32, %init: f32, %init_1: f32) {
      %0 = arith.addf %in, %init : f32
      %1 = arith.maximumf %in_0, %init_1 : f32
      linalg.yield %0, %1 : f32, f32
    }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}""",
    "broadcast": """func.func @main(%a: tensor<8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.broadcast ins(%a : tensor<8xf32>) outs(%o : tensor<4x8xf32>) dimensions = [0]
  return %r : tensor<4x8xf32>
}""",
    "transpose": """func.func @main(%a: tensor<4x8x2xf32>, %o: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %r = linalg.transpose ins(%a : tensor<4x8x2xf32>) outs(%o : tensor<2x4x8xf32>) permutation = [2, 0, 1]
  return %r : tensor<2x4x8xf32>
}""",
    "pack": """func.func @main(%a: tensor<30x32xf32>, %o: tensor<2x2x16x16xf32>, %c: f32) -> tensor<2x2x16x16xf32> {
  %r = linalg.pack %a padding_value(%c : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [16, 16]
      into %o
    : tensor<30x32xf32> -> tensor<2x2x16x16xf32>
  return %r : tensor<2x2x16x16xf32>
}""",
    "pack_even": """func.func @main(%a: tensor<4x32xf32>, %o: tensor<4x2x16xf32>) -> tensor<4x2x16xf32> {
  %r = linalg.pack %a inner_dims_pos = [1] inner_tiles = [16] into %o : tensor<4x32xf32> -> tensor<4x2x16xf32>
  return %r : tensor<4x2x16xf32>
}""",
    "unpack": """func.func @main(%a: tensor<2x2x16x8xf32>, %o: tensor<15x30xf32>) -> tensor<15x30xf32> {
  %r = linalg.unpack %a outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [16, 8] into %o
    : tensor<2x2x16x8xf32> -> tensor<15x30xf32>
  return %r : tensor<15x30xf32>
}""",
}


def _programs() -> dict[str, str]:
    out = {
        name: _named(name, [_tensor(shape) for shape in ins], _tensor(result))
        for name, (ins, result) in _CONTRACTIONS.items()
    }
    out["matmul_i8"] = _named("matmul", [_tensor("4x5", "i8"), _tensor("5x6", "i8")], _tensor("4x6", "i32"))
    unsigned = "{cast = #linalg.type_fn<cast_unsigned>}"
    out["matmul_unsigned"] = _named(
        "matmul", [_tensor("4x5", "i8"), _tensor("5x6", "i8")], _tensor("4x6", "i32"), unsigned
    )
    out["matmul_f16"] = _named("matmul", [_tensor("4x5", "f16"), _tensor("5x6", "f16")], _tensor("4x6", "f32"))
    out["matmul_i1"] = _named("matmul", [_tensor("4x5", "i1"), _tensor("5x6", "i1")], _tensor("4x6", "i1"))
    transposed = _maps("m, n, k", "m, k", "n, k", "m, n")
    out["matmul_maps"] = _named("matmul", [_tensor("4x5"), _tensor("6x5")], _tensor("4x6"), transposed)
    out["contract"] = _named("contract", [_tensor("4x5"), _tensor("6x5")], _tensor("4x6"), transposed)
    batched = _maps("b, m, n, k", "b, m, k", "b, n, k", "b, m, n")
    out["batch_matmul_maps"] = _named("batch_matmul", [_tensor("2x4x5"), _tensor("2x6x5")], _tensor("2x4x6"), batched)
    for name, (image, filter_, result, count) in _WINDOWS.items():
        out[name] = _named(name, [_tensor(image), _tensor(filter_)], _tensor(result), _window(count))
    for plain, name in _UNSIGNED_POOLINGS.items():
        image, filter_, result, count = _WINDOWS[f"pooling_{plain}"]
        out[name] = _named(name, [_tensor(image, "i8"), _tensor(filter_, "i8")], _tensor(result, "i8"), _window(count))
    for name in _QUANTIZED:
        image, filter_, result, count = _WINDOWS[name]
        out[f"{name}_q"] = _named(
            f"{name}_q",
            [_tensor(image, "i8"), _tensor(filter_, "i8"), "i32", "i32"],
            _tensor(result, "i32"),
            _window(count),
        )
    for name, a, b, result in (
        ("quantized_matmul", "4x5", "5x6", "4x6"),
        ("quantized_batch_matmul", "2x4x5", "2x5x6", "2x4x6"),
    ):
        out[name] = _named(name, [_tensor(a, "i8"), _tensor(b, "i8"), "i32", "i32"], _tensor(result, "i32"))
    for count, kinds in _ELEMENTWISE.items():
        for kind in kinds:
            out[f"elementwise_{kind}"] = _named(f"elementwise <{kind}>", [_tensor("4x5")] * count, _tensor("4x5"))
    out["elementwise_select"] = _named(
        "elementwise <select>", [_tensor("4x5", "i1"), _tensor("4x5"), _tensor("4x5")], _tensor("4x5")
    )
    out["elementwise_max_unsigned"] = _named(
        "elementwise <max_unsigned>", [_tensor("4x5", "i32")] * 2, _tensor("4x5", "i32")
    )
    row = _maps("a, b", "a, b", "b", "a, b")
    out["elementwise_maps"] = _named("elementwise <add>", [_tensor("4x5"), _tensor("5")], _tensor("4x5"), row)
    return {**out, **_WRITTEN}


NAMED_PROGRAMS = _programs()
"""Program text by name; the entry is @main."""
