"""What `fuseline.optimize` answers: a rewritten model, and what was done to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from fuseline.arguments import path_option
from fuseline.errors import FuselineError
from fuseline.exports.optimized.summary import Summary
from fuseline.runtime.files import write_file

MOST_BYTES = (1 << 31) - (1 << 24)
"""What a model of one file may take: protobuf ends at 2 GiB."""


@dataclass(frozen=True, eq=False)
class OptimizedModel:
    """A model with its graph rewritten. `summary`: what was done, and what was left and why; `external`: the model that
    was read has its weights in files beside it, and so has what is written."""

    model: ir.Model
    summary: Summary
    external: bool = False

    def to_proto(self) -> onnx.ModelProto:
        """The model with its weights in memory."""
        return ir.to_proto(ir.external_data.load_to_model(self.model) if self.external else self.model)

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the model to `path`, with a file of weights beside it (`<name>.data`) where the model that was read had
        such, or they take more than a protobuf file may hold; answers the files.

        Raises FuselineError: E0502 for a place that cannot be written, E0501 for one that ends in another format's
        suffix.
        """
        target = path_option("path", path)
        if target.suffix in (".fuse", ".mlir", ".toml", ".json"):
            raise FuselineError(
                "E0501", f"an ONNX model is no {target.suffix} file", node=str(target), hint="name it .onnx"
            )
        if self.external or _weight_bytes(self.model) > MOST_BYTES:
            return self._save_apart(target)
        content = ir.to_proto(self.model).SerializeToString()
        write_file(target, lambda file: file.write(content))
        return [str(target)]

    def _save_apart(self, target: Path) -> list[str]:
        """Both files are complete in a folder of their own before they get their names."""
        data = target.with_name(f"{target.name}.data")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=target.parent))
        except OSError as error:
            raise _unwritable(error, target) from error
        try:
            ir.save(self.model, folder / target.name, external_data=data.name)
            written = [file for file in (data, target) if (folder / file.name).exists()]
            for file in written:
                os.replace(folder / file.name, file)
        except OSError as error:
            raise _unwritable(error, target) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [str(file) for file in reversed(written)]


def _unwritable(error: OSError, path: Path) -> FuselineError:
    return FuselineError("E0502", f"cannot write: {error.strerror or error}", node=str(path), hint="give another place")


def _weight_bytes(model: ir.Model) -> int:
    values = [value for graph in model.graphs() for value in graph.initializers.values()]
    return sum(value.const_value.nbytes for value in values if value.const_value is not None)
