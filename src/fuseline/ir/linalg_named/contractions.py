"""Matrix products by name."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from fuseline.ir.linalg_named.base import CastingOp, DeclaredOp, MappedOp, add, cast_to, multiply, parse_named


def multiply_add(args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
    """`out + a * b` in the output's type."""
    a, b, out = args
    return add(out, multiply(cast_to(a, out.type, unsigned), cast_to(b, out.type, unsigned)))


def quantized_multiply_add(args: Sequence[SSAValue]) -> SSAValue:
    """`out + (a - a_zero) * (b - b_zero)` in the output's type."""
    a, b, a_zero, b_zero, out = args
    left, right = (
        arith.SubiOp(cast_to(x, out.type), cast_to(zero, out.type)).result for x, zero in ((a, a_zero), (b, b_zero))
    )
    return add(out, multiply(left, right))


class _Product(CastingOp, ABC):
    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return multiply_add(args, unsigned)


class _UnsignedProduct(DeclaredOp, ABC):
    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return multiply_add(args, True)


class _MappedProduct(MappedOp, ABC):
    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return multiply_add(args, unsigned)


class _QuantizedProduct(DeclaredOp, ABC):
    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return quantized_multiply_add(args)


@irdl_op_definition
class MatmulOp(_MappedProduct):
    """`[m, k] x [k, n] -> [m, n]`; takes the place of xDSL's, which cannot parse explicit indexing maps."""

    name = "linalg.matmul"
    LOOPS: ClassVar[str] = "m n / k : m k, k n -> m n"


@irdl_op_definition
class BatchMatmulOp(_MappedProduct):
    """`[b, m, k] x [b, k, n] -> [b, m, n]`."""

    name = "linalg.batch_matmul"
    LOOPS: ClassVar[str] = "b m n / k : b m k, b k n -> b m n"


@irdl_op_definition
class BatchReduceMatmulOp(_MappedProduct):
    """`[b, m, k] x [b, k, n] -> [m, n]`, summed over b too."""

    name = "linalg.batch_reduce_matmul"
    LOOPS: ClassVar[str] = "m n / b k : b m k, b k n -> m n"

    @classmethod
    def default_maps(cls) -> ArrayAttr[AffineMapAttr]:
        """With b as the first loop, as MLIR numbers them."""
        texts = (lambda b, m, n, k: (b, m, k), lambda b, m, n, k: (b, k, n), lambda b, m, n, k: (m, n))
        return ArrayAttr(AffineMapAttr(AffineMap.from_callable(text)) for text in texts)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """b is summed, m and n are parallel, k is summed."""
        r, p = IteratorType.REDUCTION, IteratorType.PARALLEL
        return ArrayAttr(IteratorTypeAttr(kind) for kind in (r, p, p, r))


@irdl_op_definition
class MatmulUnsignedOp(_UnsignedProduct):
    """`matmul` of unsigned operands."""

    name = "linalg.matmul_unsigned"
    LOOPS: ClassVar[str] = "m n / k : m k, k n -> m n"


@irdl_op_definition
class MatmulTransposeAOp(_Product):
    """`[k, m] x [k, n] -> [m, n]`."""

    name = "linalg.matmul_transpose_a"
    LOOPS: ClassVar[str] = "m n / k : k m, k n -> m n"


@irdl_op_definition
class MatmulTransposeBOp(_Product):
    """`[m, k] x [n, k] -> [m, n]`."""

    name = "linalg.matmul_transpose_b"
    LOOPS: ClassVar[str] = "m n / k : m k, n k -> m n"


@irdl_op_definition
class BatchMatmulTransposeAOp(_Product):
    """`[b, k, m] x [b, k, n] -> [b, m, n]`."""

    name = "linalg.batch_matmul_transpose_a"
    LOOPS: ClassVar[str] = "b m n / k : b k m, b k n -> b m n"


@irdl_op_definition
class BatchMatmulTransposeBOp(_Product):
    """`[b, m, k] x [b, n, k] -> [b, m, n]`."""

    name = "linalg.batch_matmul_transpose_b"
    LOOPS: ClassVar[str] = "b m n / k : b m k, b n k -> b m n"


@irdl_op_definition
class DotOp(_Product):
    """`[k] x [k] -> []`."""

    name = "linalg.dot"
    LOOPS: ClassVar[str] = "/ k : k, k ->"


@irdl_op_definition
class MatvecOp(_Product):
    """`[m, k] x [k] -> [m]`."""

    name = "linalg.matvec"
    LOOPS: ClassVar[str] = "m / k : m k, k -> m"


@irdl_op_definition
class VecmatOp(_Product):
    """`[k] x [k, n] -> [n]`."""

    name = "linalg.vecmat"
    LOOPS: ClassVar[str] = "n / k : k, k n -> n"


@irdl_op_definition
class BatchMatvecOp(_Product):
    """`[b, m, k] x [b, k] -> [b, m]`."""

    name = "linalg.batch_matvec"
    LOOPS: ClassVar[str] = "b m / k : b m k, b k -> b m"


@irdl_op_definition
class BatchVecmatOp(_Product):
    """`[b, k] x [b, k, n] -> [b, n]`."""

    name = "linalg.batch_vecmat"
    LOOPS: ClassVar[str] = "b n / k : b k, b k n -> b n"


@irdl_op_definition
class Mmt4DOp(_Product):
    """Tiled `[M, K, m, k] x [N, K, n, k] -> [M, N, m, n]`."""

    name = "linalg.mmt4d"
    LOOPS: ClassVar[str] = "M N m n / K k : M K m k, N K n k -> M N m n"


@irdl_op_definition
class BatchMmt4DOp(_Product):
    """Tiled and batched `[b, M, K, m, k] x [b, N, K, n, k] -> [b, M, N, m, n]`."""

    name = "linalg.batch_mmt4d"
    LOOPS: ClassVar[str] = "b M N m n / K k : b M K m k, b N K n k -> b M N m n"


@irdl_op_definition
class QuantizedMatmulOp(_QuantizedProduct):
    """`matmul` of operands less their zero points (two scalar inputs)."""

    name = "linalg.quantized_matmul"
    LOOPS: ClassVar[str] = "m n / k : m k, k n, , -> m n"


@irdl_op_definition
class QuantizedBatchMatmulOp(_QuantizedProduct):
    """`batch_matmul` of operands less their zero points (two scalar inputs)."""

    name = "linalg.quantized_batch_matmul"
    LOOPS: ClassVar[str] = "b m n / k : b m k, b k n, , -> b m n"


@irdl_op_definition
class ContractOp(_MappedProduct):
    """Any sum of products; the maps say which, loops that the output does not have are summed."""

    name = "linalg.contract"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Loops of the output are parallel, all others are summed."""
        output = self.indexing_maps.data[-1].data
        kept = {e.position for e in output.results if isinstance(e, AffineDimExpr)}
        kinds = (IteratorType.PARALLEL if d in kept else IteratorType.REDUCTION for d in range(output.num_dims))
        return ArrayAttr(IteratorTypeAttr(kind) for kind in kinds)

    @classmethod
    def parse(cls, parser: Parser) -> ContractOp:
        """`indexing_maps = [..]`, which must be there, then the common syntax. Raises ParseError for other text."""
        parser.parse_keyword("indexing_maps")
        parser.parse_punctuation("=")
        return parse_named(cls, parser, {"indexing_maps": parser.parse_attribute()})  # pyright: ignore[reportReturnType]

    def print(self, printer: Printer) -> None:
        """`indexing_maps = [..]`, then the common syntax."""
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        DeclaredOp.print(self, printer)


CONTRACTIONS = (
    MatmulOp,
    BatchMatmulOp,
    BatchReduceMatmulOp,
    MatmulUnsignedOp,
    MatmulTransposeAOp,
    MatmulTransposeBOp,
    BatchMatmulTransposeAOp,
    BatchMatmulTransposeBOp,
    DotOp,
    MatvecOp,
    VecmatOp,
    BatchMatvecOp,
    BatchVecmatOp,
    Mmt4DOp,
    BatchMmt4DOp,
    QuantizedMatmulOp,
    QuantizedBatchMatmulOp,
    ContractOp,
)
