"""Feeds and outputs as files: `name=@x.npy`, `-` for standard input, and where each output goes."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuseline.errors import FuselineError

Feeds = dict[str, np.ndarray]


def parse_feeds(texts: Iterable[str], names: list[str]) -> Feeds:
    """The arrays of `--input` options. `names` are the model's inputs: with one input its name may be left out.

    Raises E0201 for a name the model does not have, E0501 for text that is not `name=@file.npy`, E0206 for a file that
    is missing or no array.
    """
    feeds: Feeds = {}
    for text in texts:
        name, value = _split(text, names)
        if name not in names:
            raise FuselineError(
                "E0201", f"the model has no input {name!r}", node=name, hint=f"its inputs: {', '.join(names)}"
            )
        feeds[name] = _read(name, value)
    return feeds


def _split(text: str, names: list[str]) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign and len(names) == 1:
        name, value = names[0], text
    if (value != "-" and not value.startswith("@")) or not name:
        raise FuselineError(
            "E0501", f"--input does not understand {text!r}", hint="write name=@file.npy, or name=- for standard input"
        )
    return name, value


def _read(name: str, value: str) -> np.ndarray:
    source = io.BytesIO(sys.stdin.buffer.read()) if value in ("-", "@-") else Path(value[1:])
    try:
        array = np.load(source, allow_pickle=False)
    except OSError as problem:
        raise _unreadable(name, f"{value[1:]}: {problem.strerror or problem}", "check the path") from problem
    except (ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise _unreadable(name, f"{value} holds no .npy array: {problem}", "save it with numpy.save") from problem
    if not isinstance(array, np.ndarray):
        raise _unreadable(name, f"{value} is an archive of several arrays", "give one .npy file per input")
    return array


def _unreadable(name: str, detail: str, hint: str) -> FuselineError:
    return FuselineError("E0206", detail, node=name, hint=hint)


def file_name(output: str) -> str:
    """A file name for an output, safe in any folder.

    >>> file_name("encoder/layer:0")
    'encoder_layer_0.npy'
    """
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in output).lstrip(".") or "output"
    return f"{kept}.npy"


def flat_outputs(outputs: Mapping[str, Any]) -> Feeds:
    """Outputs as arrays that files can hold: items of a sequence are `name.0`, `name.1`, ..; a map is `name.keys` and
    `name.values`.

    NumPy's files know no numbers of 8 bits and less but integers: those are widened.
    """
    out: Feeds = {}
    for name, value in outputs.items():
        if isinstance(value, list):
            out |= flat_outputs({f"{name}.{i}": item for i, item in enumerate(value)})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif isinstance(value, dict):
            out |= flat_outputs(
                {
                    f"{name}.{suffix}": np.asarray(list(values))
                    for suffix, values in (("keys", value), ("values", value.values()))
                }
            )  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
        elif value is not None:
            array = np.asarray(value)
            out[name] = _storable(array)
    return out


def _storable(array: np.ndarray) -> np.ndarray:
    if array.dtype == object:
        return array.astype(np.str_)
    if array.dtype.itemsize > 1 or array.dtype.isbuiltin == 1:  # 2: a dtype that a package defines
        return array
    return array.astype(np.int8 if "int" in array.dtype.name else np.float32)


def output_files(folder: Path, outputs: Mapping[str, np.ndarray]) -> dict[Path, np.ndarray]:
    """Where each output goes; a number is put before the suffix where two names would meet."""
    files: dict[Path, np.ndarray] = {}
    for name, array in outputs.items():
        path, count = folder / file_name(name), 1
        while path in files:
            path, count = folder / file_name(f"{name}.{count}"), count + 1
        files[path] = array
    return files
