"""`InferenceSession`: onnxruntime's interface over a fuseline program, so that a script changes one import."""
