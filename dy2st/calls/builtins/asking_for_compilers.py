"""What asks whether a compiler, an exporter or a tracer runs is told that none does, as in eager.

Code that computes something else then (``if torch.compiler.is_exporting(): ...``), or that leaves out its checks, would
give another graph than eager gives results.
"""

from __future__ import annotations

import torch

from dy2st.calls.builtins.overloads import stands_for


@stands_for(
    torch.compiler.is_compiling,
    torch.compiler.is_exporting,
    torch.compiler.is_dynamo_compiling,
    torch.jit.is_tracing,  # type: ignore[attr-defined]  # documented, and not in its __all__
    torch.jit.is_scripting,  # type: ignore[attr-defined]
    torch.onnx.is_in_onnx_export,
)
def _no_compiler() -> bool:
    return False
