"""Errors as texts."""

from fuseline.errors import FuselineError
from fuseline.tuning.error_texts import error_texts


def test_parts_that_are_empty_are_left_out():
    assert error_texts(FuselineError("E0101", "no such file", node="m.onnx")) == {
        "code": "E0101",
        "title": "model file cannot be read",
        "message": "no such file",
        "node": "m.onnx",
    }
