"""``dy2st.onnx.export``: capture, translate, save."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx
import torch

from dy2st.capture.diagnosis import diagnosing
from dy2st.capture.number_inputs import InputsAs
from dy2st.capture.program import DROPPED, SPECIALIZED
from dy2st.capture.returned_names import RETURNED
from dy2st.capture.stateful_program import StateOption, capture_stateful, carried_by, require_choice, warn_of_forgotten
from dy2st.capture.unexportable import require_values
from dy2st.errors import OnnxError, SaveError, UsageError
from dy2st.onnx.custom_operators import custom_table
from dy2st.onnx.passes.dimension_names import declared_sizes, name_dimensions
from dy2st.onnx.passes.finishing import finish, settle
from dy2st.onnx.passes.graph_interface import (
    declared_dtypes,
    filled_sizes,
    require_results,
    shapes_of_inputs,
    without_texts,
)
from dy2st.onnx.passes.kept_kernels import keeping_kernels
from dy2st.onnx.passes.missing_operators import decomposing_in_place
from dy2st.onnx.passes.mixed_norms import widen_mixed_norm
from dy2st.onnx.passes.numbers_with_dimensions import give_numbers_dimensions
from dy2st.onnx.passes.plain_arguments import write_out_arguments
from dy2st.onnx.passes.plain_attention import write_out_attention
from dy2st.onnx.passes.result_layout import result_layout
from dy2st.onnx.passes.reused import reusing
from dy2st.onnx.passes.rounding import keep_bounds, require_exact_sizes
from dy2st.onnx.passes.state_values import name_state, tell_state
from dy2st.onnx.passes.value_names import name_states, result_names, state_names
from dy2st.onnx.passes.varying_outputs import (
    OptionalOutputs,
    require_optional_outputs,
    tell_outputs,
    with_flags,
    write_outputs,
)
from dy2st.onnx.passes.weight_inputs import give_values, open_weights
from dy2st.onnx.translations.control_flow import TRANSLATIONS
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.sizes.call_shapes import shapes_of_call
from dy2st.sizes.lowering import shape_env_of, watching_lowering
from dy2st.sizes.named import with_dims
from dy2st.sizes.shape_formulas import closed_forms
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.input_names import inputs_apart
from dy2st.tracing.subgraph import graph_modules
from dy2st.tracing.torch_control_flow import from_standard
from dy2st.tracing.tracer import extremes_in_pairs

LOWEST_OPSET = 18
DEFAULT_OPSET = 20

# What torch's exporter says of torchvision and of our translations is nothing to act on.
CHATTY = (
    "torch.onnx._internal.exporter._registration",
    "torch.onnx._internal.exporter._core",
    "onnxscript",
    "onnx_ir",
)


def export(  # noqa: PLR0913 - each is an option of its own
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
    allow_specialize: Iterable[int | str] | AllowedLines = (),
    drop_guards: bool = False,
    state: StateOption = None,
    optional_outputs: OptionalOutputs = "optional",
    inputs_as: InputsAs = MappingProxyType({}),
    random_inputs: bool = False,
    custom_translation_table: Mapping[Any, Any] | None = None,
    weights_are_inputs: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> torch.onnx.ONNXProgram:
    """Export ``model`` to ONNX, with its tensor control flow as ``If`` and ``Loop`` nodes.

    ``dy2st.onnx.export`` is this with the rest of the signature of ``torch.onnx.export`` around it, and says what the
    arguments are that both have. Of its own are ``weights_are_inputs`` (parameters and buffers are inputs of the file,
    with their values as defaults) and ``progress``, which is told each step.

    A list of data-dependent length is a sequence of tensors, a text that depends on the path a string; what each output
    is stands in the file's metadata then, as JSON under ``dy2st.outputs``.

    Raises:
        CarriedStateError: what lives on between calls can't be inputs and outputs; or ``state`` is ``"refuse"``.
        StagingError: control flow or state that can't be staged, at the user's line.
        SpecializedError: a size that is declared dynamic would be fixed.
        CaptureError: ``torch.export`` could not capture the model.
        RandomInputError: what is drawn in a loop or a branch can't be inputs.
        OnnxError: an operator without a translation, an opset that is too old, a file that can't be written.
        UsageError: nothing is fixed at a line that ``allow_specialize`` names.
    """
    table = {**TRANSLATIONS, **custom_table(custom_translation_table)}
    allowed = allow_specialize if isinstance(allow_specialize, AllowedLines) else AllowedLines(model, allow_specialize)
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if not LOWEST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        raise OnnxError(
            f"opset {opset} is not supported",
            hint=f"choose one from {LOWEST_OPSET} to {onnx.defs.onnx_opset_version()}",
        )
    require_choice(state)
    require_optional_outputs(optional_outputs)
    if isinstance(model, torch.export.ExportedProgram):
        program = _own_copy(model, inputs_as, state, random_inputs=random_inputs)
    else:
        progress("capturing")
        dynamic_shapes = shapes_of_call(model, args, kwargs, dynamic_shapes)
        program = capture_stateful(
            model,
            args,
            kwargs,
            dynamic_shapes=dynamic_shapes,
            allow_specialize=allowed,
            drop_guards=drop_guards,
            state=state,
            inputs_as=inputs_as,
            random_inputs=random_inputs,
        )
        if state == "forget":
            warn_of_forgotten(program, model)
    progress("writing ONNX")
    carried = carried_by(program)
    shapes = with_dims(dynamic_shapes if carried is None else carried.dynamic_shapes)
    require_values({**program.state_dict, **program.constants})
    require_results(program, model)
    program._state_dict = without_gradients(program.state_dict)
    dtypes, layout = declared_dtypes(program), result_layout(program)
    with generated_on_demand():
        without_texts(program.graph_module.graph)
        prepare(program.graph_module)
    states = state_names(program.graph_module)
    with (
        diagnosing(),
        quiet(),
        settled_sizes(program),
        closed_forms(),
        inputs_apart(),
        reusing(),
        keeping_kernels(),
        decomposing_in_place(),
        extremes_in_pairs(),
        watching_lowering(program, allowed) as specialized,
        generated_on_demand(),
    ):
        onnx_program = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=opset,
            dynamic_shapes=shapes_of_inputs(program, shapes),
            verbose=False,
            custom_translation_table=table,
            optimize=False,
        )
    assert onnx_program is not None
    with quiet():
        filled = filled_sizes(program, onnx_program.model.graph)
        settle(onnx_program.model, opset, dtypes)
        name_states(onnx_program.model, states)
        weights = open_weights(onnx_program.model, program) if weights_are_inputs else ()
        told = write_outputs(onnx_program.model, layout, opset, optional_outputs)
        returned = result_names(layout, program.graph_module.meta.get(RETURNED, {}))
        wanted, results = with_flags(told, output_names), with_flags(told, returned)
        names = name_state(onnx_program.model, carried, input_names, wanted, results)
        finish(onnx_program.model, opset, names.inputs, names.outputs, names.results, filled)
        tell_state(onnx_program.model, carried)
        tell_outputs(onnx_program.model, told)
        give_values(onnx_program.model, weights)
        name_dimensions(onnx_program.model, declared_sizes(shapes))
    if allowed is not allow_specialize:
        allowed.require_used()
    _tell(onnx_program, program, [found.to_dict() for found in specialized])
    if f is not None:
        save(onnx_program, Path(f), external_data=external_data)
    return onnx_program


def _tell(
    written: torch.onnx.ONNXProgram, program: torch.export.ExportedProgram, specialized: list[dict[str, Any]]
) -> None:
    """Write into the metadata what capture and lowering have fixed, and what capture has dropped, if anything."""
    meta = program.graph_module.meta
    lists = {SPECIALIZED: [*meta.get(SPECIALIZED, []), *specialized], DROPPED: meta.get(DROPPED, [])}
    written.model.metadata_props.update({key: json.dumps(told) for key, told in lists.items() if told})


def _own_copy(
    given: torch.export.ExportedProgram, inputs_as: InputsAs, state: StateOption, *, random_inputs: bool
) -> torch.export.ExportedProgram:
    """A program that may be changed: what the user has stays as it is. Only the graph is copied, not the weights.

    Raises:
        UsageError: an option is about what only a model knows.
    """
    if inputs_as or random_inputs:
        raise UsageError("the inputs of a program are what they are", hint="export the model")
    if state in ("io", "refuse"):
        raise UsageError(
            f'a program knows nothing of its model\'s state, as state="{state}" wants', hint="export the model"
        )
    program = copy.copy(given)
    with generated_on_demand():
        program._graph_module = copy.deepcopy(given.graph_module)
        from_standard(program.graph_module)
    return program


_REWRITES = (
    widen_mixed_norm,
    write_out_arguments,
    give_numbers_dimensions,
    require_exact_sizes,
    keep_bounds,
    write_out_attention,
)


def prepare(module: torch.fx.GraphModule) -> None:
    """Say what torch's exporter would misunderstand in another way, in a module and its subgraphs."""
    for graph in [inner.graph for inner in graph_modules(module)]:
        for node in [each for each in graph.nodes if each.op == "call_function"]:
            for rewrite in _REWRITES:
                rewrite(graph, node)
    module.recompile()


def without_gradients(state: Mapping[str, Any]) -> dict[str, Any]:
    """The same weights, of which nobody wants gradients: autograd has rules for writing into views of those."""
    return {
        name: torch.nn.Parameter(value.detach(), requires_grad=False)
        if isinstance(value, torch.nn.Parameter)
        else value
        for name, value in state.items()
    }


@contextlib.contextmanager
def settled_sizes(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Lowering makes sizes that nothing tells apart from new ones: a program can be lowered again."""
    env = shape_env_of(program)
    try:
        yield
    finally:
        if env is not None:
            env.pending_fresh_unbacked_symbols.clear()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep torch's exporter from talking about what the user can't change."""
    loggers = [logging.getLogger(name) for name in CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*", category=FutureWarning)
            warnings.filterwarnings("ignore", message=".*axis name.*")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def save(program: torch.onnx.ONNXProgram, path: Path, *, external_data: bool) -> None:
    """Write the file (and its data file, when the weights are large) into place in one step each."""
    if not path.parent.is_dir():
        raise SaveError(f"the folder {path.parent} does not exist")
    if path.is_dir():
        raise SaveError(f"{path} is a folder", hint=f"{path / 'model.onnx'}")
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        program.save(str(made), external_data=external_data and is_large(program))
        for part in sorted(Path(folder).iterdir(), reverse=True):
            part.replace(path.parent / part.name)


def is_large(program: torch.onnx.ONNXProgram) -> bool:
    """Whether the weights are more than should be in one message of protobuf, which holds 2 GB."""
    weights = program.model.graph.initializers.values()
    return sum(v.const_value.nbytes for v in weights if v.const_value is not None) > 2**30
