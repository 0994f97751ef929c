"""From what torch's exporter writes to the graph of the file, in steps that change no value.

The exporter's own optimiser is left out: see :mod:`dy2st.onnx.passes.optimizing`.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
import torch

from dy2st.onnx.passes.graph_interface import rename, restore_output_dtypes, separate_outputs
from dy2st.onnx.passes.guard_order import guards_of_sizes_first
from dy2st.onnx.passes.missing_kernels import replace_missing_kernels
from dy2st.onnx.passes.optimizing import inline, optimize
from dy2st.onnx.passes.settling import settle_dtypes
from dy2st.onnx.passes.source_lines import keep_users_frames
from dy2st.onnx.passes.value_names import make_names_unique, name_results
from dy2st.onnx.passes.workarounds import matrices_of_no_batch, positive_axes, vectors_as_matrices
from dy2st.onnx.translations.guard_nodes import name_guards


def finish(
    model: ir.Model,
    opset: int,
    dtypes: Sequence[torch.dtype | None],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    results: Sequence[str | None] = (),
) -> None:
    """Make a model of what torch's exporter wrote, in place; ``dtypes`` are those that the program's outputs have.

    ``results`` are names for the outputs, where the user gives none.

    Raises:
        UntranslatedError: onnxruntime has no kernel for an operator and dtype.
    """
    inline(model)
    settle_dtypes(model, opset)
    restore_output_dtypes(model, dtypes)
    separate_outputs(model)
    optimize(model)
    rename(model, input_names, output_names)
    if not output_names:
        name_results(model, results)
    positive_axes(model)
    vectors_as_matrices(model)
    matrices_of_no_batch(model, opset)
    guards_of_sizes_first(model)
    replace_missing_kernels(model, opset)
    make_names_unique(model)
    name_guards(model)
    keep_users_frames(model)


def forget_inner_sizes(model: ir.Model) -> None:
    """Leave dynamic sizes open, save those of inputs and results.

    An optimiser drops what stretches one size to the same, and onnxruntime plans memory by names of sizes.
    """
    for node in model.graph.all_nodes():
        for value in node.outputs:
            if value.shape is not None and value not in model.graph.outputs:
                value.shape = ir.Shape([size if isinstance(size, int) else None for size in value.shape])
