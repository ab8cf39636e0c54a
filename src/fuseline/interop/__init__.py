"""Other people's formats and interfaces: onnxruntime's session, ONNX's backend, the runtimes we are measured
against."""
