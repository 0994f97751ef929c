"""Operators of the program as ONNX nodes, by family."""
