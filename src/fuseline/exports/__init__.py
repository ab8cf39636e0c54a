"""Models that leave the compiler as models: the fused graph as ONNX (`exports/onnx`)."""
