"""Convolutions, pooling, resampling: operators that slide windows over images."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.node_calls.draw import Call, Draw, calls

AUTO = ("SAME_UPPER", "SAME_LOWER", "VALID")


def _windows(d: Draw, rank: int, kernel: list[int], *, dilated: bool = True, padded: bool = True) -> dict[str, Any]:
    """Attributes that every operator with windows has."""
    given: dict[str, Any] = d.some(
        strides=[d.whole(1, 3) for _ in range(rank)],
        dilations=[d.whole(1, 2) for _ in range(rank)] if dilated else None,
    )
    if padded and d.chance(0.25) and "dilations" not in given:
        return {**given, "auto_pad": d.one_of(*AUTO)}
    return {**given, **d.some(pads=[d.whole(0, max(kernel[i % rank] - 1, 0)) for i in range(2 * rank)])}


def _image(d: Draw, rank: int, channels: int) -> tuple[int, ...]:
    return (d.whole(1, 2), channels, *(d.whole(5, 8) for _ in range(rank)))


@calls("MaxPool")
def max_pool(d: Draw) -> Call:
    rank = d.whole(1, 3)
    kernel = [d.whole(1, 3) for _ in range(rank)]
    given = _windows(d, rank, kernel, dilated=not d.before(10))
    given |= {} if d.before(10) or "auto_pad" in given else d.some(ceil_mode=d.whole(0, 1))
    count = 1 if d.before(8) else d.whole(1, 2)
    sizes = _image(d, rank, d.whole(1, 3))
    x = d.distinct(sizes) if d.dtype().kind == "f" else d.values(sizes)
    return Call(
        [x], {"kernel_shape": kernel, **given, **(d.some(storage_order=d.whole(0, 1)) if count == 2 else {})}, count
    )


@calls("AveragePool", "LpPool")
def average_pool(d: Draw) -> Call:
    rank, lp = d.whole(1, 3), d.schema.name == "LpPool"
    kernel = [d.whole(1, 3) for _ in range(rank)]
    given = _windows(d, rank, kernel, dilated=not d.before(18 if lp else 19))
    given |= {} if d.before(18 if lp else 10) or "auto_pad" in given else d.some(ceil_mode=d.whole(0, 1))
    given |= d.some(p=d.whole(1, 3)) if lp else d.some(count_include_pad=d.whole(0, 1))
    return Call([d.values(_image(d, rank, d.whole(1, 3)))], {"kernel_shape": kernel, **given})


@calls("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draw) -> Call:
    return Call(
        [d.values(_image(d, d.whole(1, 3), d.whole(1, 3)))],
        d.some(p=d.whole(1, 3)) if d.schema.name == "GlobalLpPool" else {},
    )


@calls("MaxUnpool")
def max_unpool(d: Draw) -> Call:
    n, c, h, w = d.whole(1, 2), d.whole(1, 2), d.whole(2, 3), d.whole(2, 3)
    cells = np.array([[(2 * i + d.whole(0, 1)) * 2 * w + 2 * j + d.whole(0, 1) for j in range(w)] for i in range(h)])
    places = cells + np.arange(n * c).reshape(n, c, 1, 1) * 4 * h * w
    return Call([d.values((n, c, h, w)), places.astype(np.int64)], {"kernel_shape": [2, 2], "strides": [2, 2]})


@calls("Conv")
def conv(d: Draw) -> Call:
    rank, groups = d.whole(1, 3), d.whole(1, 3)
    kernel, per, out = [d.whole(1, 3) for _ in range(rank)], d.whole(1, 2), d.whole(1, 2) * groups
    x, w = d.values(_image(d, rank, groups * per)), d.values((out, per, *kernel))
    given = {"group": groups} if groups > 1 else {}
    return Call(
        [x, w, *([d.values((out,))] if d.chance() else [])],
        {**given, **d.some(kernel_shape=kernel), **_windows(d, rank, kernel)},
    )


@calls("ConvTranspose")
def conv_transpose(d: Draw) -> Call:
    rank, groups = d.whole(1, 3), d.whole(1, 3)
    kernel, per, out = [d.whole(1, 3) for _ in range(rank)], d.whole(1, 2), d.whole(1, 2)
    sizes = (d.whole(1, 2), groups * per, *(d.whole(2, 4) for _ in range(rank)))
    strides = [d.whole(1, 3) for _ in range(rank)]
    given: dict[str, Any] = {"strides": strides, **d.some(dilations=[d.whole(1, 2) for _ in range(rank)])}
    if d.chance(0.7):
        given |= {
            "output_padding": [d.whole(0, s - 1) for s in strides],
            "pads": [d.whole(0, k - 1) for k in [*kernel, *kernel]],
        }
    elif d.chance(0.5):
        given |= {"auto_pad": d.one_of(*AUTO)}
    else:
        given |= {
            "output_shape": [size * s + d.whole(0, 1) for size, s in zip(sizes[2:], strides, strict=True)],
            **d.some(auto_pad=d.one_of(*AUTO[:2])),
        }
    bias = [d.values((out * groups,))] if d.chance() else []
    return Call(
        [d.values(sizes), d.values((groups * per, out, *kernel)), *bias],
        {**({"group": groups} if groups > 1 else {}), **given},
    )


@calls("Col2Im")
def col2im(d: Draw) -> Call:
    image, block = [d.whole(4, 6), d.whole(4, 6)], [d.whole(1, 3), d.whole(1, 3)]
    strides, dilations = [d.whole(1, 2), d.whole(1, 2)], [1, d.whole(1, 2)]
    pads = [d.whole(0, 1) for _ in range(4)]
    counts = [
        (image[i] + pads[i] + pads[2 + i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)
    ]
    columns = d.values((d.whole(1, 2), d.whole(1, 2) * block[0] * block[1], counts[0] * counts[1]))
    return Call([columns, np.array(image), np.array(block)], {"strides": strides, "dilations": dilations, "pads": pads})


@calls("DeformConv")
def deform_conv(d: Draw) -> Call:
    groups, offsets = d.whole(1, 2), d.whole(1, 2)
    channels, kernel = groups * offsets * d.whole(1, 2), [d.whole(1, 3), d.whole(1, 3)]
    sizes, strides, pads = _image(d, 2, channels), [d.whole(1, 2), d.whole(1, 2)], [d.whole(0, 1) for _ in range(4)]
    out = [(sizes[2 + i] + pads[i] + pads[2 + i] - kernel[i]) // strides[i] + 1 for i in range(2)]
    taps, filters = kernel[0] * kernel[1], groups * d.whole(1, 2)
    inputs: list[Any] = [
        d.values(sizes),
        d.values((filters, channels // groups, *kernel)),
        d.values((sizes[0], 2 * offsets * taps, *out)),
    ]
    inputs += [
        d.values((filters,)) if d.chance() else None,
        d.values((sizes[0], offsets * taps, *out)) if d.chance() else None,
    ]
    return Call(
        inputs, {"group": groups, "offset_group": offsets, "strides": strides, "pads": pads, "kernel_shape": kernel}
    )


@calls("RoiAlign")
def roi_align(d: Draw) -> Call:
    sizes, count = _image(d, 2, d.whole(1, 2)), d.whole(1, 3)
    corner = d.rng.uniform(0, 3, (count, 2))
    rois = np.concatenate([corner, corner + d.rng.uniform(0.5, 4, (count, 2))], 1).astype(d.dtype(1))
    given = d.some(mode=d.one_of("avg", "max"), sampling_ratio=d.whole(0, 3), spatial_scale=d.number(0.5, 1))
    given |= {} if d.before(16) else d.some(coordinate_transformation_mode=d.one_of("half_pixel", "output_half_pixel"))
    images = d.rng.integers(0, sizes[0], count)
    return Call(
        [d.values(sizes), rois, images.astype(np.int64)],
        {"output_height": d.whole(1, 3), "output_width": d.whole(1, 3), **given},
    )


@calls("MaxRoiPool")
def max_roi_pool(d: Draw) -> Call:
    sizes, count = _image(d, 2, d.whole(1, 2)), d.whole(1, 3)
    corner = d.rng.integers(0, 3, (count, 2))
    rois = np.concatenate(
        [d.rng.integers(0, sizes[0], (count, 1)), corner, corner + d.rng.integers(0, 4, (count, 2))], 1
    )
    return Call(
        [d.values(sizes), rois.astype(d.dtype(1))],
        {"pooled_shape": [d.whole(1, 3), d.whole(1, 3)], **d.some(spatial_scale=d.number(0.5, 1))},
    )


@calls("GridSample")
def grid_sample(d: Draw) -> Call:
    rank = 2 if d.before(20) or d.chance(0.7) else 3
    names = (
        ("bilinear", "nearest", "bicubic")
        if d.before(20)
        else ("linear", "nearest", "cubic")
        if rank == 2
        else ("linear", "nearest")
    )
    sizes = (d.whole(1, 2), d.whole(1, 2), *(d.whole(1, 5) for _ in range(rank)))
    grid = d.rng.uniform(-1.3, 1.3, (sizes[0], *(d.whole(1, 4) for _ in range(rank)), rank)).astype(d.dtype(1))
    given = d.some(
        mode=d.one_of(*names), padding_mode=d.one_of("zeros", "border", "reflection"), align_corners=d.whole(0, 1)
    )
    return Call([d.values(sizes), grid], given)


@calls("AffineGrid")
def affine_grid(d: Draw) -> Call:
    rank, batch = d.whole(2, 3), d.whole(1, 2)
    sizes = [batch, d.whole(1, 2), *(d.whole(2, 4) for _ in range(rank))]
    return Call([d.values((batch, rank, rank + 1)), np.array(sizes)], d.some(align_corners=d.whole(0, 1)))


@calls("Upsample")
def upsample(d: Draw) -> Call:
    sizes = (d.whole(1, 2), d.whole(1, 2), d.whole(2, 4), d.whole(2, 4))
    scales = [1.0, 1.0, d.one_of(1.0, 1.5, 2.0, 3.0), d.one_of(1.0, 1.5, 2.0, 3.0)]
    mode = d.some(mode=d.one_of("nearest", "linear"))
    if d.before(9):
        return Call([d.values(sizes)], {"scales": scales, **mode})
    return Call([d.values(sizes), np.array(scales, np.float32)], mode)


TRANSFORMS = (
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@calls("Resize")
def resize(d: Draw) -> Call:
    sizes = (d.whole(1, 2), d.whole(1, 2), d.whole(2, 5), d.whole(2, 5))
    scales = np.array([1, 1, *(d.one_of(0.5, 0.6, 1.0, 1.5, 2.0, 2.5) for _ in range(2))], np.float32)
    mode = d.one_of("nearest", "linear", *([] if d.before(11) else ["cubic"]))
    if d.before(10 + 1):
        return Call([d.values(sizes), scales], {"mode": mode})
    given: dict[str, Any] = {"mode": mode, **d.some(**_resize_options(d, mode))}
    roi = np.zeros(0, d.dtype(1)) if d.before(13) else None
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        roi = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1], d.dtype(1))
        given |= d.some(extrapolation_value=d.number())
    if d.chance():
        return Call([d.values(sizes), roi, scales], given)
    wanted = np.array([sizes[0], sizes[1], d.whole(1, 8), d.whole(1, 8)])
    return Call([d.values(sizes), roi, np.zeros(0, np.float32) if d.before(13) else None, wanted], given)


def _resize_options(d: Draw, mode: str) -> dict[str, Any]:
    transforms = [t for t in TRANSFORMS if t != "tf_half_pixel_for_nn" or (d.before(13) and mode == "nearest")]
    out: dict[str, Any] = {
        "coordinate_transformation_mode": d.one_of(*transforms, *([] if d.before(19) else ["half_pixel_symmetric"]))
    }
    if mode == "nearest":
        out["nearest_mode"] = d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        out |= {"cubic_coeff_a": d.number(-0.9, -0.3), "exclude_outside": d.whole(0, 1)}
    return out | ({} if d.before(18) or mode == "nearest" else {"antialias": d.whole(0, 1)})
