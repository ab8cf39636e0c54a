"""A reduced model as files: the model, its feeds, and a test that fails while it shows the difference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fuseline.runtime.files import write_files
from fuseline.verify.reduce.candidate import Candidate

_TEST = '''"""{words}

Written by `fuseline reduce`; it fails as long as the difference is there.
"""

from pathlib import Path

import numpy as np
import onnx

import fuseline

FOLDER = Path(__file__).parent


def test_{name}():
    model = onnx.load(FOLDER / "{model}")
    onnx.checker.check_model(model)
    program = fuseline.compile(model, cache=False{options})
{compared}'''

_COMPARED = """    feeds = dict(np.load(FOLDER / "{feeds}"))
    found = program.run(feeds)
    expected = {reference}
    for name, right in expected.items():
        largest = np.max(np.abs(right.astype(np.float64)), initial=0.0)
        np.testing.assert_allclose(found[name], right, rtol=0, atol={tolerance} * largest)
"""

_REFERENCES = {
    "onnxruntime": "_by_onnxruntime(model, feeds)",
    "interpreter": 'fuseline.compile(model, target="interpreter", fusion="none").run(feeds)',
}

_BY_ONNXRUNTIME = """

def _by_onnxruntime(model, feeds):
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds), strict=True))
"""


def paths_of(output: Path) -> tuple[Path, Path, Path]:
    """Where the model, its feeds and the test go: `small.onnx`, `small.npz`, `test_small.py`."""
    name = "".join(letter if letter.isalnum() else "_" for letter in output.stem)
    return output, output.with_suffix(".npz"), output.with_name(f"test_{name}.py")


def write_reduced(
    candidate: Candidate, output: Path, words: str, against: str, tolerance: float, options: Mapping[str, Any]
) -> None:
    """Write the three files, all or none. `words` say what it shows, `options` are the arguments of the compile. Raises
    E0502 for a place that cannot be written."""
    model, feeds, test = paths_of(output)
    text = test_text(output, words, against, tolerance, options)
    write_files(
        {
            model: lambda file: file.write(candidate.model.SerializeToString()),
            feeds: lambda file: np.savez(file, **dict(candidate.feeds)),  # pyright: ignore[reportArgumentType]
            test: lambda file: file.write(text.encode()),
        }
    )


def test_text(output: Path, words: str, against: str, tolerance: float, options: Mapping[str, Any]) -> str:
    """A pytest file about the model at `output`; of what only compiling or a command shows, the compile alone."""
    model, feeds, test = paths_of(output)
    reference = _REFERENCES.get(against, "")
    compared = _COMPARED.format(feeds=feeds.name, reference=reference, tolerance=tolerance) if reference else ""
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    found = _TEST.format(
        words=words.replace("\\", "/").replace('"""', "'''"),
        name=test.stem.removeprefix("test_"),
        model=model.name,
        options=given,
        compared=compared or "    assert program.inputs\n",
    )
    return found + (_BY_ONNXRUNTIME if against == "onnxruntime" and compared else "")
