"""Lowerings of ONNX operators, grouped by concern; `registry` finds every module here by itself."""
