"""A case: a model, feeds for one or more runs, and how it is compiled; kept as one `.onnx` file with the rest in its
metadata."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from tests.fuzz.tensors import Array

Feeds = dict[str, Array]

FUSION = ("default", "none", "aggressive")
NUMERICS = ("default", "strict", "fast")
MOST_THREADS = 3
TARGETS = ("cpu", "cpu:avx2", "cpu:baseline")

_KEY = "fuseline.fuzz"


@dataclass(frozen=True, slots=True)
class Choices:
    """How a case is compiled and run; `sizes` bounds every symbol (`0..99`), which may not be 0 otherwise."""

    fusion: str = "default"
    numerics: str = "default"
    threads: int = 1
    target: str = "cpu"
    saved: bool = False
    sizes: str = ""

    @property
    def combination(self) -> str:
        """The levels of fusion and numerics, as `none/strict`."""
        return f"{self.fusion}/{self.numerics}"

    def every_combination(self) -> Iterator[Choices]:
        """These choices under every level of fusion and numerics, on 1 to 3 threads in turn."""
        for index, (fusion, numerics) in enumerate(product(FUSION, NUMERICS)):
            yield replace(self, fusion=fusion, numerics=numerics, threads=1 + (self.threads + index) % MOST_THREADS)


@dataclass(frozen=True, slots=True)
class Case:
    """`feeds` has one entry per run; `seed` is what made the case."""

    model: onnx.ModelProto
    feeds: Sequence[Feeds]
    choices: Choices = field(default_factory=Choices)
    seed: int = 0
    wild: bool = False

    def replace(self, **changes: Any) -> Case:
        """The case with other fields."""
        return replace(self, **changes)

    def op_types(self) -> list[str]:
        """The operators in order."""
        return [node.op_type for node in self.model.graph.node]


def save_case(case: Case, path: Path) -> None:
    """Write a case as one ONNX file."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    about = {
        "choices": asdict(case.choices),
        "seed": case.seed,
        "wild": case.wild,
        "feeds": [_encode(feeds) for feeds in case.feeds],
    }
    onnx.helper.set_model_props(model, {_KEY: json.dumps(about)})
    path.write_bytes(model.SerializeToString())


def load_case(path: Path) -> Case:
    """Read a case that `save_case` wrote."""
    model = onnx.load(path)
    about = json.loads(next(entry.value for entry in model.metadata_props if entry.key == _KEY))
    del model.metadata_props[:]
    return Case(
        model, [_decode(text) for text in about["feeds"]], Choices(**about["choices"]), about["seed"], about["wild"]
    )


def _encode(feeds: Feeds) -> str:
    """An npz in base64; strings as JSON, 16-bit brain floats as their bits."""
    buffer, arrays = io.BytesIO(), {}
    for name, array in feeds.items():
        if array.dtype == object:
            arrays[f"s:{name}"] = np.array(json.dumps([array.shape, array.reshape(-1).tolist()]))
        elif array.dtype == ml_dtypes.bfloat16:
            arrays[f"b:{name}"] = array.view(np.uint16)
        else:
            arrays[f"n:{name}"] = array
    np.savez_compressed(buffer, **arrays)
    return base64.b64encode(buffer.getvalue()).decode()


def _decode(text: str) -> Feeds:
    found: Feeds = {}
    with np.load(io.BytesIO(base64.b64decode(text))) as arrays:
        for key in arrays.files:
            kind, name = key.split(":", 1)
            found[name] = arrays[key]
            if kind == "b":
                found[name] = found[name].view(ml_dtypes.bfloat16)
            elif kind == "s":
                shape, words = json.loads(str(arrays[key]))
                found[name] = np.array(words, object).reshape(shape)
    return found
