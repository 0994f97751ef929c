"""From what torch's exporter writes to the graph of the file, in steps that change no value.

The exporter's own optimiser is left out: see :mod:`dy2st.onnx.passes.optimizing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import onnx_ir as ir
import onnx_ir.passes.common as passes
import torch

from dy2st.onnx.passes.deciding import decide_branches
from dy2st.onnx.passes.definite_signs import settle_signs
from dy2st.onnx.passes.exact_integers import compute_exactly
from dy2st.onnx.passes.graph_interface import rename, restore_output_dtypes, separate_outputs
from dy2st.onnx.passes.loop_sizes import name_state_sizes
from dy2st.onnx.passes.missing_kernels import replace_missing_kernels
from dy2st.onnx.passes.nested_conversions import convert_nested
from dy2st.onnx.passes.node_constructs import note_constructs
from dy2st.onnx.passes.optimizing import inline, optimize
from dy2st.onnx.passes.pipeline import run_passes
from dy2st.onnx.passes.pooled_nan import pool_nan
from dy2st.onnx.passes.sampled_grids import sample_anywhere
from dy2st.onnx.passes.settling import settle_dtypes
from dy2st.onnx.passes.sigmoid_tails import keep_tails
from dy2st.onnx.passes.source_lines import keep_users_frames
from dy2st.onnx.passes.value_names import make_names_unique, make_node_names_unique, name_results
from dy2st.onnx.passes.workarounds import matrices_of_no_batch, positive_axes, scaled_products, vectors_as_matrices
from dy2st.onnx.translations.guard_nodes import name_guards


def settle(model: ir.Model, opset: int, dtypes: Sequence[torch.dtype | None]) -> None:
    """The first steps, in place: the program's outputs are those of the graph, of the ``dtypes`` that they have."""
    inline(model)
    convert_nested(model, opset)
    settle_signs(model, opset)
    settle_dtypes(model, opset)
    restore_output_dtypes(model, dtypes)


def simplify(model: ir.Model, opset: int, filled: AbstractSet[str] = frozenset()) -> None:
    """Fewer and cheaper nodes for the same values, in place."""
    name_state_sizes(model)
    run_passes(model, opset, filled)
    _share_constants(model)


def _share_constants(model: ir.Model) -> None:
    """Constants of all graphs become initializers of one, equal ones the same; what nothing reads is gone."""
    make_names_unique(model)
    for tidy in (
        passes.RemoveUnusedNodesPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
        passes.RemoveUnusedNodesPass(),  # onnxruntime warns of unused initializers
    ):
        tidy(model)


def finish(
    model: ir.Model,
    opset: int,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    results: Sequence[str | None] = (),
    filled: AbstractSet[str] = frozenset(),
) -> None:
    """The other steps, in place.

    ``results`` are names for the outputs, where the user gives none; ``filled`` are the sizes that are never zero.

    Raises:
        UntranslatedError: onnxruntime has no kernel for an operator and dtype.
    """
    separate_outputs(model)
    optimize(model)
    decide_branches(model, opset)
    simplify(model, opset, filled)
    rename(model, input_names, output_names)
    if not output_names:
        name_results(model, results)
    positive_axes(model)
    compute_exactly(model, opset)
    sample_anywhere(model, opset)
    pool_nan(model, opset)
    keep_tails(model, opset)
    vectors_as_matrices(model, filled)
    matrices_of_no_batch(model, opset, filled)
    scaled_products(model)
    replace_missing_kernels(model, opset)
    _share_constants(model)
    make_names_unique(model)
    make_node_names_unique(model)
    name_guards(model)
    note_constructs(model)
    keep_users_frames(model)
