"""The signature of ``torch.onnx.export`` around dy2st's own export and check."""
