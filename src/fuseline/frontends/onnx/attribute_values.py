"""String attributes that name one of a few things: which, by operator (`*`: any) and attribute."""

from __future__ import annotations

from fuseline.errors import FuselineError

_RESIZED = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
_REDUCTIONS = ("none", "add", "mul", "max", "min")
VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("*", "auto_pad"): ("NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"),
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("linear", "bilinear", "nearest", "cubic", "bicubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "coordinate_transformation_mode"): _RESIZED,
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("ScatterElements", "reduction"): _REDUCTIONS,
    ("ScatterND", "reduction"): _REDUCTIONS,
    ("Upsample", "mode"): ("nearest", "linear"),
}


def text_of(value: str | bytes, op_type: str, name: str, label: str) -> str:
    """The value of a string attribute; raises FuselineError (E0105) for one that is no text, or none of those that the
    operator knows."""
    try:
        text = value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise FuselineError(
            "E0105", f"attribute {name} is not UTF-8: {value!r}", node=label, hint="export the model again"
        ) from error
    allowed = VALUES.get((op_type, name)) or VALUES.get(("*", name))
    if allowed is not None and text not in allowed:
        raise FuselineError(
            "E0105",
            f"{op_type} knows no {name} {text!r}",
            node=label,
            hint=f"one of {', '.join(filter(None, allowed))}",
        )
    return text
