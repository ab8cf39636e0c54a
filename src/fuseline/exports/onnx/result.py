"""What `fuseline.fuse` answers: a model whose large weights are still where they were read."""

from __future__ import annotations

import os
from dataclasses import dataclass

import onnx

from fuseline.arguments import path_option
from fuseline.exports.onnx.summary import FusedSummary
from fuseline.exports.onnx.writer import as_one_file, in_memory, write_model
from fuseline.frontends.onnx.model_file import OpenedModel
from fuseline.report.records import CompileRecord


@dataclass(frozen=True, eq=False)
class FusedModel:
    """A model with a function for each dispatch. `record`: what the compile decided; `summary`: what was exported."""

    opened: OpenedModel
    record: CompileRecord
    summary: FusedSummary

    def to_proto(self) -> onnx.ModelProto:
        """The model with its weights in memory; what lay in files of external data still does, by paths into the
        folder of the model that was read."""
        return in_memory(self.opened)

    def to_bytes(self) -> bytes:
        """The model as one file. Raises FuselineError (E0501) where it has files of weights beside it."""
        return as_one_file(self.opened)

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the model to `path`, with a file of weights beside it (`<name>.data`) where they take more than a
        protobuf file may hold, or lay outside of the model that was read; answers the files. Weights are copied in
        pieces, never held in memory.

        Raises FuselineError: E0502 for a place that cannot be written, E0501 for one that ends in another format's
        suffix.
        """
        return write_model(self.opened, path_option("path", path))
