"""Tests write ONNX models in one language, `tests/graphs/onnx_text.py`: who puts one together from protos is listed
here, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
BY_HAND = {
    "graphs/onnx_text.py": "the language itself",
    "one_node.py": "one node of the arrays that it reads, values that are sequences or nothing among them",
    "errors/test_malformed_graphs.py": "graphs and functions that break ONNX's rules",
    "fuzz/evaluate.py": "a node as the generator drew it, alone",
    "fuzz/generate.py": "nodes as protos, which the fuzzer shrinks and changes",
    "unit/frontends/onnx/test_check_graphs.py": "graphs and functions that break ONNX's rules",
    "unit/frontends/onnx/test_check_tensors.py": "tensors whose content does not fit, in every field that holds some",
    "unit/frontends/onnx/test_protos.py": "walks over protos: what is walked is what is made",
    "unit/frontends/test_weights_in_place.py": "the order of fields in a file",
}


def test_models_are_written_in_one_language() -> None:
    makes = re.compile(r"\bmake_model\b")
    makers = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path != Path(__file__) and makes.search(path.read_text(encoding="utf-8"))
    }
    assert makers - BY_HAND.keys() == set(), "write the model with onnx_model (tests/graphs/onnx_text.py)"
    assert makers == BY_HAND.keys(), "no longer by hand"
