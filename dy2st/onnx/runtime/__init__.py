"""Running a file on onnxruntime: whole in a process of its own, or node by node."""
