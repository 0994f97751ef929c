"""What runs a program's graph: code generated of it, onnxruntime, or a backend of ``torch.compile``'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from dy2st.capture.program import NUMBERS
from dy2st.static.executable import compiled, with_mode_of
from dy2st.static.generated import generated
from dy2st.static.onnxruntime_backend import NAME as ONNXRUNTIME
from dy2st.static.onnxruntime_backend import on_onnxruntime
from dy2st.static.undoing import undone_by_copies, undone_by_lines
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.torch_control_flow import to_standard

OWN_BACKENDS = ("eager", ONNXRUNTIME)


def in_the_form_for(backend: str, program: ExportedProgram) -> None:
    """Other backends want torch's operators for branches and loops; ours know their gradients better."""
    if backend not in OWN_BACKENDS:
        with generated_on_demand():
            to_standard(program.graph_module)


def forward_of(
    program: ExportedProgram, read: Sequence[torch.Tensor | None], backend: str, *, writes: bool
) -> Callable[..., Any]:
    """What runs a program's graph; ``read`` are the tensors among its inputs, ``writes`` is whether it changes some."""
    return with_mode_of(program, _plain_forward(program, read, backend, writes=writes))


def _plain_forward(
    program: ExportedProgram, read: Sequence[torch.Tensor | None], backend: str, *, writes: bool
) -> Callable[..., Any]:
    if backend not in OWN_BACKENDS:
        return undone_by_copies(program, compiled(program.graph_module.forward, backend))
    numbers = [kind is not None for kind in program.graph_module.meta[NUMBERS]]
    made = generated(program.graph_module, numbers)
    if backend == ONNXRUNTIME:
        return on_onnxruntime(program, read, made.function, writes=writes)
    return undone_by_lines(program, made)
