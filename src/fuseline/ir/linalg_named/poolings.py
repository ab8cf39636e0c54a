"""Poolings by name."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition

from fuseline.ir.linalg_named.base import WindowOp, cast_to


class _Pooling(WindowOp, ABC):
    """Inputs: the image, already padded, and a tensor of which only the shape is read: the window."""

    FLOAT: ClassVar[type[Operation]]
    INTEGER: ClassVar[type[Operation]]
    UNSIGNED: ClassVar[bool] = False

    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        value, _, out = args
        kind = cls.FLOAT if isinstance(out.type, AnyFloat) else cls.INTEGER
        return kind.create(operands=[out, cast_to(value, out.type, cls.UNSIGNED)], result_types=[out.type]).results[0]


class _Sum(_Pooling, ABC):
    FLOAT: ClassVar[type[Operation]] = arith.AddfOp
    INTEGER: ClassVar[type[Operation]] = arith.AddiOp


class _Max(_Pooling, ABC):
    FLOAT: ClassVar[type[Operation]] = arith.MaximumfOp
    INTEGER: ClassVar[type[Operation]] = arith.MaxSIOp


class _Min(_Pooling, ABC):
    FLOAT: ClassVar[type[Operation]] = arith.MinimumfOp
    INTEGER: ClassVar[type[Operation]] = arith.MinSIOp


class _UnsignedMax(_Pooling, ABC):
    FLOAT: ClassVar[type[Operation]] = arith.MaximumfOp
    INTEGER: ClassVar[type[Operation]] = arith.MaxUIOp
    UNSIGNED: ClassVar[bool] = True


class _UnsignedMin(_Pooling, ABC):
    FLOAT: ClassVar[type[Operation]] = arith.MinimumfOp
    INTEGER: ClassVar[type[Operation]] = arith.MinUIOp
    UNSIGNED: ClassVar[bool] = True


@irdl_op_definition
class PoolingNwcSumOp(_Sum):
    """Sums over a window, channels last."""

    name = "linalg.pooling_nwc_sum"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw -> n ow c"


@irdl_op_definition
class PoolingNwcMaxOp(_Max):
    """Maxima over a window, channels last."""

    name = "linalg.pooling_nwc_max"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw -> n ow c"


@irdl_op_definition
class PoolingNwcMinOp(_Min):
    """Minima over a window, channels last."""

    name = "linalg.pooling_nwc_min"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw -> n ow c"


@irdl_op_definition
class PoolingNwcMaxUnsignedOp(_UnsignedMax):
    """Unsigned maxima over a window, channels last."""

    name = "linalg.pooling_nwc_max_unsigned"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw -> n ow c"


@irdl_op_definition
class PoolingNwcMinUnsignedOp(_UnsignedMin):
    """Unsigned minima over a window, channels last."""

    name = "linalg.pooling_nwc_min_unsigned"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw -> n ow c"


@irdl_op_definition
class PoolingNcwSumOp(_Sum):
    """Sums over a window, channels first."""

    name = "linalg.pooling_ncw_sum"
    LOOPS: ClassVar[str] = "n c ow / kw : n c ow+kw, kw -> n c ow"


@irdl_op_definition
class PoolingNcwMaxOp(_Max):
    """Maxima over a window, channels first."""

    name = "linalg.pooling_ncw_max"
    LOOPS: ClassVar[str] = "n c ow / kw : n c ow+kw, kw -> n c ow"


@irdl_op_definition
class PoolingNhwcSumOp(_Sum):
    """Sums over a window, channels last."""

    name = "linalg.pooling_nhwc_sum"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw -> n oh ow c"


@irdl_op_definition
class PoolingNhwcMaxOp(_Max):
    """Maxima over a window, channels last."""

    name = "linalg.pooling_nhwc_max"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw -> n oh ow c"


@irdl_op_definition
class PoolingNhwcMinOp(_Min):
    """Minima over a window, channels last."""

    name = "linalg.pooling_nhwc_min"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw -> n oh ow c"


@irdl_op_definition
class PoolingNhwcMaxUnsignedOp(_UnsignedMax):
    """Unsigned maxima over a window, channels last."""

    name = "linalg.pooling_nhwc_max_unsigned"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw -> n oh ow c"


@irdl_op_definition
class PoolingNhwcMinUnsignedOp(_UnsignedMin):
    """Unsigned minima over a window, channels last."""

    name = "linalg.pooling_nhwc_min_unsigned"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw -> n oh ow c"


@irdl_op_definition
class PoolingNchwSumOp(_Sum):
    """Sums over a window, channels first."""

    name = "linalg.pooling_nchw_sum"
    LOOPS: ClassVar[str] = "n c oh ow / kh kw : n c oh+kh ow+kw, kh kw -> n c oh ow"


@irdl_op_definition
class PoolingNchwMaxOp(_Max):
    """Maxima over a window, channels first."""

    name = "linalg.pooling_nchw_max"
    LOOPS: ClassVar[str] = "n c oh ow / kh kw : n c oh+kh ow+kw, kh kw -> n c oh ow"


@irdl_op_definition
class PoolingNdhwcSumOp(_Sum):
    """Sums over a window, channels last."""

    name = "linalg.pooling_ndhwc_sum"
    LOOPS: ClassVar[str] = "n od oh ow c / kd kh kw : n od+kd oh+kh ow+kw c, kd kh kw -> n od oh ow c"


@irdl_op_definition
class PoolingNdhwcMaxOp(_Max):
    """Maxima over a window, channels last."""

    name = "linalg.pooling_ndhwc_max"
    LOOPS: ClassVar[str] = "n od oh ow c / kd kh kw : n od+kd oh+kh ow+kw c, kd kh kw -> n od oh ow c"


@irdl_op_definition
class PoolingNdhwcMinOp(_Min):
    """Minima over a window, channels last."""

    name = "linalg.pooling_ndhwc_min"
    LOOPS: ClassVar[str] = "n od oh ow c / kd kh kw : n od+kd oh+kh ow+kw c, kd kh kw -> n od oh ow c"


POOLINGS = (
    PoolingNwcSumOp,
    PoolingNwcMaxOp,
    PoolingNwcMinOp,
    PoolingNwcMaxUnsignedOp,
    PoolingNwcMinUnsignedOp,
    PoolingNcwSumOp,
    PoolingNcwMaxOp,
    PoolingNhwcSumOp,
    PoolingNhwcMaxOp,
    PoolingNhwcMinOp,
    PoolingNhwcMaxUnsignedOp,
    PoolingNhwcMinUnsignedOp,
    PoolingNchwSumOp,
    PoolingNchwMaxOp,
    PoolingNdhwcSumOp,
    PoolingNdhwcMaxOp,
    PoolingNdhwcMinOp,
)
