"""Ops of IREE's `iree_linalg_ext` as structured ops: one file per concern, `nest.py` has what all of them are written
with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from fuseline.frontends.mlir.linalg_ext.custom import custom
from fuseline.frontends.mlir.linalg_ext.folds import arg_compare, scan
from fuseline.frontends.mlir.linalg_ext.fourier import fft
from fuseline.frontends.mlir.linalg_ext.indexed import gather, map_load, map_store, scatter
from fuseline.frontends.mlir.linalg_ext.ordering import sort, top_k
from fuseline.frontends.mlir.linalg_ext.windows import im2col
from fuseline.frontends.mlir.linalg_ext.winograd import filter_transform, input_transform, output_transform
from fuseline.ir.linalg_ext import (
    ArgCompareOp,
    CustomOp,
    FftOp,
    GatherOp,
    Im2colOp,
    MapLoadOp,
    MapStoreOp,
    ScanOp,
    ScatterOp,
    SortOp,
    TopkOp,
    TopkV2Op,
    WinogradFilterOp,
    WinogradInputOp,
    WinogradOutputOp,
)
from fuseline.ir.provenance import replace

_WRITTEN_OUT: dict[type[Operation], Callable[[Any], list[SSAValue]]] = {
    SortOp: sort,
    TopkOp: top_k,
    TopkV2Op: top_k,
    ScanOp: scan,
    ArgCompareOp: arg_compare,
    ScatterOp: scatter,
    GatherOp: gather,
    MapLoadOp: map_load,
    MapStoreOp: map_store,
    FftOp: fft,
    Im2colOp: im2col,
    WinogradFilterOp: filter_transform,
    WinogradInputOp: input_transform,
    WinogradOutputOp: output_transform,
    CustomOp: custom,
}


def expand_linalg_ext(module: ModuleOp) -> None:
    """Write out each op but attention. Raises FuselineError (E0306) for what has no form."""
    for op in list(module.walk()):
        write = _WRITTEN_OUT.get(type(op))
        if write is not None:
            replace(op, [], write(op))
