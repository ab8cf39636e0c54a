"""Ops along one dimension: sort, selection, scan, the best element, a stage of a Fourier transform."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.build import element_of
from fuseline.ir.linalg_ext.base import BOOLEAN, FLAG, NUMBER, ExtOp, check_sizes, shape, without


@irdl_op_definition
class SortOp(ExtOp):
    """The outputs, sorted together along a dimension; the body sees each of them twice and says whether the first comes
    before the second."""

    name = "iree_linalg_ext.sort"
    WORDS: ClassVar[dict[str, str]] = {"dimension": NUMBER}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((0, 0), (1, 99))

    def verify_form(self) -> None:
        """Raises VerifyException for tensors of different sizes, and a dimension that they do not have."""
        self.dimension(len(shape(self.outputs[0])))
        for value in self.outputs:
            check_sizes(shape(self.outputs[0]), shape(value), "what is sorted together")


class _SelectionOp(ExtOp, ABC):
    WORDS: ClassVar[dict[str, str]] = {"dimension": NUMBER, "is_sorted": FLAG}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 2), (1, 2))

    def body_types(self) -> Sequence[Attribute]:
        return [element_of(self.inputs[0])] * 2

    def verify_form(self) -> None:
        sizes = shape(self.inputs[0])
        axis = self.dimension(len(sizes))
        for value in (*self.inputs[1:], *self.outputs):
            check_sizes(
                without(sizes, axis),
                without(shape(value), axis) if len(shape(value)) == len(sizes) else (),
                "beside the dimension",
            )
        if element_of(self.outputs[0]) != element_of(self.inputs[0]) or (
            len(self.inputs) == 2 and len(self.outputs) != 2
        ):
            raise VerifyException("expected values of one type, and a result for the indices where there are some")


@irdl_op_definition
class TopkOp(_SelectionOp):
    """The first elements along a dimension, of the outputs as they were and the input, and where they stand."""

    name = "iree_linalg_ext.topk"
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 2), (2, 2))


@irdl_op_definition
class TopkV2Op(_SelectionOp):
    """The first elements of the input along a dimension and, if wanted, where they stand."""

    name = "iree_linalg_ext.topk_v2"


@irdl_op_definition
class ScanOp(ExtOp):
    """What the body makes of all elements up to each along a dimension (or, not `inclusive`, before it), and of all of
    them."""

    name = "iree_linalg_ext.scan"
    WORDS: ClassVar[dict[str, str]] = {"dimension": NUMBER, "inclusive": BOOLEAN}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 1), (2, 2))

    def body_types(self) -> Sequence[Attribute]:
        """Two elements: what was combined so far, and the next."""
        return [element_of(self.inputs[0])] * 2

    def yield_types(self) -> Sequence[Attribute]:
        """One element."""
        return [element_of(self.inputs[0])]

    def verify_form(self) -> None:
        """Raises VerifyException for an output of other sizes than the input, an accumulator that has not the sizes
        beside the dimension, and different element types."""
        sizes = shape(self.inputs[0])
        axis = self.dimension(len(sizes))
        check_sizes(sizes, shape(self.outputs[0]), "input and output")
        check_sizes(without(sizes, axis), shape(self.outputs[1]), "input and accumulator")
        if {element_of(value) for value in self.operands} != {element_of(self.inputs[0])}:
            raise VerifyException("expected one element type")


@irdl_op_definition
class ArgCompareOp(ExtOp):
    """The element along a dimension that comes before all others by the comparison in the body, and its index (from
    `index_base` on, or given)."""

    name = "iree_linalg_ext.arg_compare"
    WORDS: ClassVar[dict[str, str]] = {"dimension": NUMBER}
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 2), (2, 2))

    def body_types(self) -> Sequence[Attribute]:
        """Two values of the input."""
        return [element_of(self.inputs[0])] * 2

    def verify_form(self) -> None:
        """Raises VerifyException for outputs that have not the sizes beside the dimension, indices of other sizes than
        the values, and element types that differ between an input and its output."""
        sizes = shape(self.inputs[0])
        axis = self.dimension(len(sizes))
        for value in self.outputs:
            check_sizes(without(sizes, axis), shape(value), "input and output")
        if len(self.inputs) == 2:
            check_sizes(sizes, shape(self.inputs[1]), "values and indices")
        if element_of(self.outputs[0]) != element_of(self.inputs[0]) or (
            len(self.inputs) == 2 and element_of(self.inputs[1]) != element_of(self.outputs[1])
        ):
            raise VerifyException("input and output have other element types")


@irdl_op_definition
class FftOp(ExtOp):
    """One stage of a Fourier transform of the last dimension, real and imaginary parts; the inputs are the stage and
    perhaps its coefficients."""

    name = "iree_linalg_ext.fft"
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 3), (2, 2))
    HAS_BODY: ClassVar[bool] = False

    def verify_form(self) -> None:
        """Raises VerifyException for real and imaginary parts of different sizes or without dimensions, and
        coefficients that are no two vectors."""
        check_sizes(shape(self.outputs[0]), shape(self.outputs[1]), "real and imaginary parts")
        if (
            len(self.inputs) == 2
            or any(len(shape(value)) != 1 for value in self.inputs[1:])
            or not shape(self.outputs[0])
        ):
            raise VerifyException("expected a stage and two vectors of coefficients, or none")
