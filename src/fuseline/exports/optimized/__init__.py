"""The cleaned and re-laid-out graph as plain ONNX, for other runtimes (docs/onnx-export.md)."""
