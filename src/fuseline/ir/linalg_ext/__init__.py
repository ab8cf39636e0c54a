"""IREE's `iree_linalg_ext` dialect on tensors, as text has it before it is tiled; a frontend writes each op out."""

from __future__ import annotations

from xdsl.ir import Dialect, Operation

from fuseline.ir.linalg_ext.attention import AttentionOp, OnlineAttentionOp
from fuseline.ir.linalg_ext.base import ExtOp, ExtYieldOp
from fuseline.ir.linalg_ext.custom import CustomOp, IteratorTypeAttr
from fuseline.ir.linalg_ext.indexed import GatherOp, MapLoadOp, MapStoreOp, ScatterOp
from fuseline.ir.linalg_ext.ordering import ArgCompareOp, FftOp, ScanOp, SortOp, TopkOp, TopkV2Op
from fuseline.ir.linalg_ext.windows import Im2colOp, WinogradFilterOp, WinogradInputOp, WinogradOp, WinogradOutputOp

_OPS: list[type[Operation]] = [
    *(AttentionOp, OnlineAttentionOp, SortOp, TopkOp, TopkV2Op, ScanOp, ArgCompareOp, FftOp),
    *(ScatterOp, GatherOp, MapLoadOp, MapStoreOp),
    *(Im2colOp, WinogradInputOp, WinogradFilterOp, WinogradOutputOp),
    CustomOp,
    ExtYieldOp,
]

LinalgExt = Dialect("iree_linalg_ext", _OPS, [IteratorTypeAttr])

__all__ = [
    "ArgCompareOp",
    "AttentionOp",
    "CustomOp",
    "ExtOp",
    "ExtYieldOp",
    "FftOp",
    "GatherOp",
    "Im2colOp",
    "LinalgExt",
    "MapLoadOp",
    "MapStoreOp",
    "OnlineAttentionOp",
    "ScanOp",
    "ScatterOp",
    "SortOp",
    "TopkOp",
    "TopkV2Op",
    "WinogradFilterOp",
    "WinogradInputOp",
    "WinogradOp",
    "WinogradOutputOp",
]
