"""Ops that convolutions are made of: windows laid out as rows of a matrix, and the transforms of minimal filtering."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.build import element_of
from fuseline.ir.linalg_ext.base import LISTED, NUMBER, NUMBERS, ROWS, ExtOp, check_sizes, shape


@irdl_op_definition
class Im2colOp(ExtOp):
    """Windows of an image as a tensor: each result dimension counts through one row of `output_sizes`: the batch, then
    where windows stand (`m_pos`), then what is in one (kernel and channels, in the order of the image's dimensions)."""

    name = "iree_linalg_ext.im2col"
    WORDS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("strides", "dilations", "kernel_size", "offsets"), NUMBERS),
        "output_sizes": ROWS,
        **dict.fromkeys(("batch_pos", "m_pos", "k_pos", "input_k_perm", "output_perm"), NUMBERS),
    }
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 1), (1, 1))
    HAS_BODY: ClassVar[bool] = False

    def rows(self) -> list[list[int]]:
        """What each result dimension counts through, before they are put in the order of `output_perm`."""
        value = self.attributes["output_sizes"]
        assert isinstance(value, ArrayAttr)
        return [[int(n) for n in row.get_values()] for row in value if isinstance(row, DenseArrayBase)]

    def verify_form(self) -> None:
        """Raises VerifyException for dimensions that are not there, lists of other lengths and other sizes."""
        rank, rows = len(shape(self.inputs[0])), self.rows()
        named = [*self.numbers("batch_pos"), *self.numbers("m_pos"), *self.numbers("k_pos")]
        if sorted(named) != list(range(rank)):
            raise VerifyException(f"batch_pos, m_pos and k_pos name {named}, the image has {rank} dimensions")
        windows = len(self.numbers("m_pos"))
        for word in ("strides", "dilations", "kernel_size"):
            if len(self.numbers(word)) != windows:
                raise VerifyException(f"{word} of {len(self.numbers(word))} numbers, m_pos has {windows}")
        order = self.numbers("output_perm")
        if sorted(order) != list(range(len(rows))) or len(self.numbers("offsets")) != len(rows):
            raise VerifyException("output_perm, offsets and output_sizes do not fit each other")
        wanted = [_product(rows[place]) for place in order]
        check_sizes(wanted, shape(self.outputs[0]), "of the result")
        if element_of(self.inputs[0]) != element_of(self.outputs[0]):
            raise VerifyException("the result has another element type than the image")


class WinogradOp(ExtOp, ABC):
    """A transform of minimal filtering. `DIMENSIONS` is the word for the two dimensions that it transforms."""

    DIMENSIONS: ClassVar[str] = "image_dimensions"
    WORDS: ClassVar[dict[str, str]] = {
        "output_tile_size": NUMBER,
        "kernel_size": NUMBER,
        "image_dimensions": LISTED,
    }
    COUNTS: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 1), (1, 1))
    HAS_BODY: ClassVar[bool] = False

    @property
    def space(self) -> tuple[int, int]:
        """The two dimensions."""
        first, second = self.numbers(self.DIMENSIONS)
        return first, second

    def verify_form(self) -> None:
        """Raises VerifyException for other dimensions than those of an image or a filter, and tensors of other
        ranks."""
        named = self.numbers(self.DIMENSIONS)
        if named not in ((0, 1), (1, 2), (2, 3)):
            raise VerifyException(f"{self.DIMENSIONS} {list(named)}")
        if (len(shape(self.inputs[0])), len(shape(self.outputs[0]))) != self.ranks():
            raise VerifyException(f"expected tensors of ranks {self.ranks()}")
        if element_of(self.inputs[0]) != element_of(self.outputs[0]):
            raise VerifyException("the result has another element type")

    def ranks(self) -> tuple[int, int]:
        """The ranks of input and result."""
        return 4, 6


@irdl_op_definition
class WinogradInputOp(WinogradOp):
    """Tiles of an image, transformed: `[tile, tile, batch, rows, columns, channels]`."""

    name = "iree_linalg_ext.winograd.input_transform"


@irdl_op_definition
class WinogradFilterOp(WinogradOp):
    """A filter, transformed: `[tile, tile, channels, filters]`."""

    name = "iree_linalg_ext.winograd.filter_transform"
    DIMENSIONS: ClassVar[str] = "kernel_dimensions"
    WORDS: ClassVar[dict[str, str]] = {
        "output_tile_size": NUMBER,
        "kernel_size": NUMBER,
        "kernel_dimensions": LISTED,
    }

    def ranks(self) -> tuple[int, int]:
        """The ranks of input and result."""
        return 4, 4


@irdl_op_definition
class WinogradOutputOp(WinogradOp):
    """Products of both, transformed back into an image."""

    name = "iree_linalg_ext.winograd.output_transform"

    def ranks(self) -> tuple[int, int]:
        """The ranks of input and result."""
        return 6, 4


def _product(sizes: Sequence[int]) -> int:
    out = 1
    for size in sizes:
        out *= size
    return out
