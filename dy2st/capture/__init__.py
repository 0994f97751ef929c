"""From an eager model to a ``torch.export.ExportedProgram``."""
