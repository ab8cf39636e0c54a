"""A model with its dispatches as ONNX functions: a graph in, a graph out.

model ──source──> nodes with names ──compile──> records ──placement──> which node where ──functions──> model
"""
