"""``dy2st.onnx.export``: capture, translate, save."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dy2st.capture import export as capture
from dy2st.onnx.saving import save
from dy2st.onnx.translations import TRANSLATIONS

LOWEST_OPSET = 18
DEFAULT_OPSET = 20


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    external_data: bool = True,
) -> torch.onnx.ONNXProgram:
    """Export ``model`` to ONNX, with its tensor control flow as ``If`` and ``Loop`` nodes.

    The signature mirrors ``torch.onnx.export(dynamo=True)``.
    """
    if isinstance(model, torch.export.ExportedProgram):
        program = model
    else:
        program = capture(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    onnx_program = torch.onnx.export(
        program,
        dynamo=True,
        opset_version=opset_version or DEFAULT_OPSET,
        input_names=input_names,
        output_names=output_names,
        verbose=False,
        custom_translation_table=TRANSLATIONS,
    )
    assert onnx_program is not None
    if f is not None:
        save(onnx_program, Path(f), external_data=external_data)
    return onnx_program
