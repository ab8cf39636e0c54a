"""Convolutions of integers less their zero points."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition

from fuseline.ir.linalg_named.base import WindowOp
from fuseline.ir.linalg_named.contractions import quantized_multiply_add


class _QuantizedConvolution(WindowOp, ABC):
    """Inputs: the image, the filter, and the zero point of each (scalars)."""

    @classmethod
    def scalar(cls, args: Sequence[SSAValue], unsigned: bool) -> SSAValue:
        return quantized_multiply_add(args)


@irdl_op_definition
class Conv2dNhwcHwcfQOp(_QuantizedConvolution):
    """`conv_2d_nhwc_hwcf` of operands less their zero points."""

    name = "linalg.conv_2d_nhwc_hwcf_q"
    LOOPS: ClassVar[str] = "n oh ow f / kh kw c : n oh+kh ow+kw c, kh kw c f, , -> n oh ow f"


@irdl_op_definition
class Conv2dNhwcFhwcQOp(_QuantizedConvolution):
    """`conv_2d_nhwc_fhwc` of operands less their zero points."""

    name = "linalg.conv_2d_nhwc_fhwc_q"
    LOOPS: ClassVar[str] = "n oh ow f / kh kw c : n oh+kh ow+kw c, f kh kw c, , -> n oh ow f"


@irdl_op_definition
class Conv2dNchwFchwQOp(_QuantizedConvolution):
    """`conv_2d_nchw_fchw` of operands less their zero points."""

    name = "linalg.conv_2d_nchw_fchw_q"
    LOOPS: ClassVar[str] = "n f oh ow / c kh kw : n c oh+kh ow+kw, f c kh kw, , -> n f oh ow"


@irdl_op_definition
class Conv3dNdhwcDhwcfQOp(_QuantizedConvolution):
    """`conv_3d_ndhwc_dhwcf` of operands less their zero points."""

    name = "linalg.conv_3d_ndhwc_dhwcf_q"
    LOOPS: ClassVar[str] = "n od oh ow f / kd kh kw c : n od+kd oh+kh ow+kw c, kd kh kw c f, , -> n od oh ow f"


@irdl_op_definition
class Conv2dNgchwGfchwQOp(_QuantizedConvolution):
    """`conv_2d_ngchw_gfchw` of operands less their zero points."""

    name = "linalg.conv_2d_ngchw_gfchw_q"
    LOOPS: ClassVar[str] = "n g f oh ow / c kh kw : n g c oh+kh ow+kw, g f c kh kw, , -> n g f oh ow"


@irdl_op_definition
class Conv2dNhwgcGfhwcQOp(_QuantizedConvolution):
    """`conv_2d_nhwgc_gfhwc` of operands less their zero points."""

    name = "linalg.conv_2d_nhwgc_gfhwc_q"
    LOOPS: ClassVar[str] = "n oh ow g f / kh kw c : n oh+kh ow+kw g c, g f kh kw c, , -> n oh ow g f"


@irdl_op_definition
class DepthwiseConv2dNhwcHwcQOp(_QuantizedConvolution):
    """`depthwise_conv_2d_nhwc_hwc` of operands less their zero points."""

    name = "linalg.depthwise_conv_2d_nhwc_hwc_q"
    LOOPS: ClassVar[str] = "n oh ow c / kh kw : n oh+kh ow+kw c, kh kw c, , -> n oh ow c"


@irdl_op_definition
class DepthwiseConv2dNhwcHwcmQOp(_QuantizedConvolution):
    """`depthwise_conv_2d_nhwc_hwcm` of operands less their zero points."""

    name = "linalg.depthwise_conv_2d_nhwc_hwcm_q"
    LOOPS: ClassVar[str] = "n oh ow c m / kh kw : n oh+kh ow+kw c, kh kw c m, , -> n oh ow c m"


QUANTIZED_CONVOLUTIONS = (
    Conv2dNhwcHwcfQOp,
    Conv2dNhwcFhwcQOp,
    Conv2dNchwFchwQOp,
    Conv3dNdhwcDhwcfQOp,
    Conv2dNgchwGfchwQOp,
    Conv2dNhwgcGfhwcQOp,
    DepthwiseConv2dNhwcHwcQOp,
    DepthwiseConv2dNhwcHwcmQOp,
)
