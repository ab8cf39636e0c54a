"""Convolutions by name: plain, grouped and depthwise, in one to three dimensions."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_op_definition

from fuseline.ir.linalg_named.base import DeclaredOp, WindowOp, read_loops
from fuseline.ir.linalg_named.contractions import multiply_add


class _Convolution(WindowOp, ABC):
    """Inputs: the image, already padded, and the filter. Operands widen signed to the output's type."""

    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return multiply_add(args, unsigned)


class _PlainConvolution(DeclaredOp, ABC):
    """A window that moves by one, without channels; MLIR gives these no strides."""

    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return multiply_add(args, unsigned)

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return read_loops(self.LOOPS).maps((1, 1, 1), (1, 1, 1))


@irdl_op_definition
class Conv1dOp(_PlainConvolution):
    """A window sum of products without channels."""

    name = "linalg.conv_1d"
    LOOPS: ClassVar[str] = "ow / kw : ow+kw, kw -> ow"


@irdl_op_definition
class Conv2dOp(_PlainConvolution):
    """A window sum of products without channels."""

    name = "linalg.conv_2d"
    LOOPS: ClassVar[str] = "oh ow / kh kw : oh+kh ow+kw, kh kw -> oh ow"


@irdl_op_definition
class Conv3dOp(_PlainConvolution):
    """A window sum of products without channels."""

    name = "linalg.conv_3d"
    LOOPS: ClassVar[str] = "od oh ow / kd kh kw : od+kd oh+kh ow+kw, kd kh kw -> od oh ow"


@irdl_op_definition
class Conv1dNwcWcfOp(_Convolution):
    """Channels last, filters last."""

    name = "linalg.conv_1d_nwc_wcf"
    LOOPS: ClassVar[str] = "n ow f / kw c : n ow+kw c, kw c f -> n ow f"


@irdl_op_definition
class Conv1dNcwFcwOp(_Convolution):
    """Channels first, filters first."""

    name = "linalg.conv_1d_ncw_fcw"
    LOOPS: ClassVar[str] = "n f ow / c kw : n c ow+kw, f c kw -> n f ow"


@irdl_op_definition
class Conv2dNhwcHwcfOp(_Convolution):
    """Channels last, filters last."""

    name = "linalg.conv_2d_nhwc_hwcf"
    LOOPS: ClassVar[str] = "n oh ow f / kh kw c : n oh+kh ow+kw c, kh kw c f -> n oh ow f"


@irdl_op_definition
class Conv2dNchwFchwOp(_Convolution):
    """Channels first, filters first."""

    name = "linalg.conv_2d_nchw_fchw"
    LOOPS: ClassVar[str] = "n f oh ow / c kh kw : n c oh+kh ow+kw, f c kh kw -> n f oh ow"


@irdl_op_definition
class Conv3dNdhwcDhwcfOp(_Convolution):
    """Channels last, filters last."""

    name = "linalg.conv_3d_ndhwc_dhwcf"
    LOOPS: ClassVar[str] = "n od oh ow f / kd kh kw c : n od+kd oh+kh ow+kw c, kd kh kw c f -> n od oh ow f"


@irdl_op_definition
class Conv3dNcdhwFcdhwOp(_Convolution):
    """Channels first, filters first."""

    name = "linalg.conv_3d_ncdhw_fcdhw"
    LOOPS: ClassVar[str] = "n f od oh ow / c kd kh kw : n c od+kd oh+kh ow+kw, f c kd kh kw -> n f od oh ow"


@irdl_op_definition
class Conv2dNhwcFhwcOp(_Convolution):
    """Channels last, filters first."""

    name = "linalg.conv_2d_nhwc_fhwc"
    LOOPS: ClassVar[str] = "n oh ow f / kh kw c : n oh+kh ow+kw c, f kh kw c -> n oh ow f"


@irdl_op_definition
class Conv2dNgchwFgchwOp(_Convolution):
    """Grouped, channels first, filters outside groups."""

    name = "linalg.conv_2d_ngchw_fgchw"
    LOOPS: ClassVar[str] = "n g f oh ow / c kh kw : n g c oh+kh ow+kw, f g c kh kw -> n g f oh ow"


@irdl_op_definition
class Conv2dNgchwGfchwOp(_Convolution):
    """Grouped, channels first, filters inside groups."""

    name = "linalg.conv_2d_ngchw_gfchw"
    LOOPS: ClassVar[str] = "n g f oh ow / c kh kw : n g c oh+kh ow+kw, g f c kh kw -> n g f oh ow"


@irdl_op_definition
class Conv2dNhwgcGfhwcOp(_Convolution):
    """Grouped, channels last, filters inside groups."""

    name = "linalg.conv_2d_nhwgc_gfhwc"
    LOOPS: ClassVar[str] = "n oh ow g f / kh kw c : n oh+kh ow+kw g c, g f kh kw c -> n oh ow g f"


@irdl_op_definition
class DepthwiseConv1dNwcWcOp(_Convolution):
    """One filter per channel, channels last."""

    name = "linalg.depthwise_conv_1d_nwc_wc"
    LOOPS: ClassVar[str] = "n ow c / kw : n ow+kw c, kw c -> n ow c"


@irdl_op_definition
class DepthwiseConv1dNcwCwOp(_Convolution):
    """One filter per channel, channels first."""

    name = "linalg.depthwise_conv_1d_ncw_cw"
    LOOPS: ClassVar[str] = "n ow c / kw : n c ow+kw, c kw -> n c ow"


@irdl_op_definition
class DepthwiseConv1dNwcWcmOp(_Convolution):
    """m filters per channel, channels last."""

    name = "linalg.depthwise_conv_1d_nwc_wcm"
    LOOPS: ClassVar[str] = "n ow c m / kw : n ow+kw c, kw c m -> n ow c m"


@irdl_op_definition
class DepthwiseConv2dNhwcHwcOp(_Convolution):
    """One filter per channel, channels last."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw c -> n oh ow c"


@irdl_op_definition
class DepthwiseConv2dNchwChwOp(_Convolution):
    """One filter per channel, channels first."""

    name = "linalg.depthwise_conv_2d_nchw_chw"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n c oh+kh ow+kw, c kh kw -> n c oh ow"


@irdl_op_definition
class DepthwiseConv2dNhwcHwcmOp(_Convolution):
    """m filters per channel, channels last."""

    name = "linalg.depthwise_conv_2d_nhwc_hwcm"
    LOOPS: ClassVar[str] = "n oh ow c m / kh kw : n oh+kh ow+kw c, kh kw c m -> n oh ow c m"


@irdl_op_definition
class DepthwiseConv3dNdhwcDhwcOp(_Convolution):
    """One filter per channel, channels last."""

    name = "linalg.depthwise_conv_3d_ndhwc_dhwc"
    LOOPS: ClassVar[str] = "n od oh ow c / kd kh kw : n od+kd oh+kh ow+kw c, kd kh kw c -> n od oh ow c"


@irdl_op_definition
class DepthwiseConv3dNcdhwCdhwOp(_Convolution):
    """One filter per channel, channels first."""

    name = "linalg.depthwise_conv_3d_ncdhw_cdhw"
    LOOPS: ClassVar[str] = "n od oh ow c / kd kh kw : n c od+kd oh+kh ow+kw, c kd kh kw -> n c od oh ow"


@irdl_op_definition
class DepthwiseConv3dNdhwcDhwcmOp(_Convolution):
    """m filters per channel, channels last."""

    name = "linalg.depthwise_conv_3d_ndhwc_dhwcm"
    LOOPS: ClassVar[str] = "n od oh ow c m / kd kh kw : n od+kd oh+kh ow+kw c, kd kh kw c m -> n od oh ow c m"


CONVOLUTIONS = (
    Conv1dOp,
    Conv2dOp,
    Conv3dOp,
    Conv1dNwcWcfOp,
    Conv1dNcwFcwOp,
    Conv2dNhwcHwcfOp,
    Conv2dNchwFchwOp,
    Conv3dNdhwcDhwcfOp,
    Conv3dNcdhwFcdhwOp,
    Conv2dNhwcFhwcOp,
    Conv2dNgchwFgchwOp,
    Conv2dNgchwGfchwOp,
    Conv2dNhwgcGfhwcOp,
    DepthwiseConv1dNwcWcOp,
    DepthwiseConv1dNcwCwOp,
    DepthwiseConv1dNwcWcmOp,
    DepthwiseConv2dNhwcHwcOp,
    DepthwiseConv2dNchwChwOp,
    DepthwiseConv2dNhwcHwcmOp,
    DepthwiseConv3dNdhwcDhwcOp,
    DepthwiseConv3dNcdhwCdhwOp,
    DepthwiseConv3dNdhwcDhwcmOp,
)
