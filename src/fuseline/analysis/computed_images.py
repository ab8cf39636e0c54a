"""Images of windows that are evaluated into scratch where they are read, as lines of them are copied there.

    quantise ──> pad ──> depthwise    =>    lines are quantised, with padding around them, then the window slides

What is stored may be copied like that, too, where its channels lie apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.image_box import lying_order
from fuseline.analysis.linear_forms import Fold, Linear, flatten
from fuseline.analysis.operand_access import LinearAccess, always_inside
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.source_paths import Border, Bound, Path, Tracer, coordinates_of
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim


@dataclass(frozen=True, slots=True)
class ComputedImage:
    """What is evaluated for the image: `value`, of `sizes`, at coordinates `at` of the root's loops; beyond `bounds`
    the pad value, or what a border repeats. `lying`: the dimension that most of what it is made of lies along."""

    value: SSAValue
    sizes: tuple[Dim, ...]
    at: tuple[Linear, ...]
    bounds: tuple[Bound, ...]
    pad: float | int
    lying: int

    def access(self, last: int) -> LinearAccess:
        """Where the elements would lie if they were stored along dimension `last`, at the sizes that are assumed: how
        loops step over them is the same at others."""
        order = [*(axis for axis in range(len(self.at)) if axis != last), last]
        flat = flatten([self.at[axis] for axis in order], [assumed_size(self.sizes[axis]) for axis in order])
        return LinearAccess(self.value, flat, self.bounds, self.pad)

    def border_of(self, axis: int) -> Bound | None:
        """The border that a dimension is folded back at, if it has one."""
        return next((b for b in self.bounds if b.border is not None and b.coordinate == self.at[axis]), None)

    def moved_by(self, loop: int) -> int | None:
        """The dimension that a loop moves along, the first one."""
        return next((axis for axis, form in enumerate(self.at) if loop in form.terms), None)


def computed_image(
    root: StructuredOp, position: int, shapes: ShapeAnalysis, is_stored: Callable[[SSAValue], bool]
) -> ComputedImage | None:
    """The image that input `position` of a window is, behind pads and the like; None where it is in
    parts, or neither stored nor computed element by element."""
    extents, coordinates = root.loops(shapes), coordinates_of(root.input_maps[position])
    if coordinates is None:
        return None
    tracer = Tracer(shapes, extents, lambda value: is_stored(value) or _is_elementwise(value))
    paths = tracer.follow(Path(root.inputs[position], tuple(coordinates)))
    if paths is None or len(paths) != 1 or paths[0].ranges:
        return None
    return _image_of(paths[0], shapes, extents, is_stored)


def _image_of(
    path: Path, shapes: ShapeAnalysis, extents: Sequence[Dim], is_stored: Callable[[SSAValue], bool]
) -> ComputedImage | None:
    sizes, unfolded = shapes.dims(path.value), [_unfolded(form) for form in path.at]
    at = tuple(found[0] for found in unfolded)
    borders = [found[1] for found in unfolded if found[1] is not None]
    bounds = tuple(bound for bound in (*path.bounds, *borders) if not always_inside(bound, extents))
    forms = (*at, *(bound.coordinate for bound in bounds))
    if not isinstance(path.value.type, TensorType) or not sizes or not all(map(_is_known, forms)):
        return None
    lying = lying_order(path.value, shapes, is_stored)[-1]
    return ComputedImage(path.value, tuple(sizes), at, bounds, path.pad or 0, lying)


def _unfolded(form: Linear) -> tuple[Linear, Bound | None]:
    """A coordinate as if its dimension went on beyond its border, and the border that folds it back; as it is where it
    is none that is folded itself."""
    plain = Linear({**form.loops}, form.constant)
    folds = [atom for atom, step in form.terms.items() if isinstance(atom, Fold) and step == 1]
    if len(folds) != 1 or len(form.terms) != len(plain.terms) + 1 or folds[0].coordinate != plain:
        return form, None
    return plain, Bound(plain, folds[0].size, Border(folds[0].mode, 0))


def _is_known(form: Linear) -> bool:
    """Whether a coordinate is made of the loops themselves, by numbers that are known."""
    return form.plain and all(isinstance(n, int) for n in (form.constant, *form.terms.values()))


def _is_elementwise(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and kind(value.op) is Kind.ELEMENTWISE
