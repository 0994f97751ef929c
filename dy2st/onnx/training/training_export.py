"""``dy2st.onnx.export_training``: one file that computes a whole training step."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import OutputKind

from dy2st.calls.outside_world import Constants
from dy2st.capture.diagnosis import diagnosing
from dy2st.capture.program import capture_program
from dy2st.derivatives.backward_rules import BEFORE
from dy2st.derivatives.decomposing import unfused
from dy2st.errors import NoGradientError, UsageError
from dy2st.onnx.exporting import export, quiet, save, settled_sizes
from dy2st.onnx.training.optimisers import require_known
from dy2st.onnx.training.step_module import MODEL, StepModule
from dy2st.onnx.training.step_program import Step, Trained, step_program
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.sizes.lowering import watching_lowering
from dy2st.sizes.shape_formulas import closed_forms
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.input_names import inputs_apart

# Where a file says what is state: a JSON object of ``loss``, ``rates`` and ``state`` (each input's next value).
TRAINING = "dy2st.training"


def export_training(
    model: torch.nn.Module,
    args: tuple[Any, ...],
    f: str | os.PathLike[str] | None = None,
    *,
    loss: Callable[..., Any],
    targets: tuple[Any, ...] = (),
    optimizer: torch.optim.Optimizer | None = None,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    external_data: bool = True,
    allow_specialize: Iterable[int | str] | AllowedLines = (),
) -> torch.onnx.ONNXProgram:
    """Export one step of training to ONNX: the loss, its gradients and the optimiser's update.

    The derivative of a loop is a ``Loop``, that of a branch an ``If``. As in eager mode, a parameter that the loss does
    not depend on in some step keeps its value and its state in it.

    The file's inputs are the batch (``args``, ``kwargs`` and ``targets``), then, by their names, the learning rate
    (``learning_rate``; ``learning_rate.0`` and so on where the optimiser has several groups), the parameters that are
    trained, the buffers that the model changes, and the optimiser's state (``weight.exp_avg``). What these are now is
    their default value. The outputs are ``loss`` (0-d) and the next value of each: ``weight_next`` of
    ``weight``. Which is which stands in the file's metadata, as JSON under ``dy2st.training``;
    ``dy2st.onnx.TrainingRunner`` feeds one step's outputs to the next. What never changes is part of the file.

    Args:
        model: the module, in the mode (``train()``, ``eval()``) that it is to be trained in.
        args: the positional arguments of one example call.
        f: the file to write; without it nothing is written.
        loss: a function or module; ``loss(output, *targets)`` is a 0-d tensor of floats.
        targets: what the loss takes beside the model's output.
        optimizer: a ``torch.optim.SGD``, ``Adam`` or ``AdamW``, with the state that it has; without one the outputs are
            the gradients of all parameters, ``weight_grad``, zero where there is none.
        kwargs: the keyword arguments of the example call.
        dynamic_shapes: which sizes of arguments and targets may change: by name, or in order.
        opset_version: as for ``dy2st.onnx.export``.
        external_data: the same.
        allow_specialize: the same.

    Raises:
        NoGradientError: something has no derivative that a graph can compute, at the user's line.
        UsageError: an optimiser whose step dy2st can't write; hooks on gradients; a loss that is none.
        Dy2stError: as for ``dy2st.onnx.export``.
    """
    if not isinstance(model, torch.nn.Module):
        raise UsageError("what is trained is no torch.nn.Module", hint="give the module that has the parameters")
    require_no_hooks(model)
    given = dict(kwargs or {})
    step = StepModule(model, loss, len(args), list(given), len(targets))
    batch = (*args, *given.values(), *targets)
    shapes = _shapes(step, dynamic_shapes)
    allowed = allow_specialize if isinstance(allow_specialize, AllowedLines) else AllowedLines(model, allow_specialize)
    with torch.enable_grad():
        captured = capture_program(
            step,
            batch,
            dynamic_shapes=shapes,
            allow_specialize=allowed,
            forward=step.forward_of(),
            constants=Constants(differentiated=True),
        )
    trained, rates = _trained(captured, step, optimizer)
    with (
        diagnosing(),
        quiet(),
        settled_sizes(captured),
        closed_forms(),
        inputs_apart(),
        generated_on_demand(),
        unfused(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*", category=FutureWarning)
        with watching_lowering(captured, allowed):
            program = captured.run_decompositions(dict(BEFORE))
        _require_kept(program)
        _join_shared(program, step)
        made = step_program(program, trained, rates, f"{MODEL}.")
    onnx_program = export(
        made.program,
        input_names=made.inputs,
        output_names=made.outputs,
        opset_version=opset_version,
        external_data=external_data,
        allow_specialize=allowed,
    )
    _tell_state(onnx_program.model, made, list(rates))
    if f is not None:
        save(onnx_program, Path(f), external_data=external_data)
    return onnx_program


def require_no_hooks(model: torch.nn.Module) -> None:
    """Refuse hooks that eager calls with gradients.

    Raises:
        UsageError: a module or parameter has one.
    """
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise UsageError(
                f"the module {name or type(module).__name__!r} has a backward hook, which a file can't call",
                hint="remove it before the export",
            )
    for name, parameter in model.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise UsageError(
                f"the parameter {name!r} has a hook on its gradient, which a file can't call",
                hint="remove it before the export",
            )


def _shapes(step: StepModule, given: Any) -> Any:
    """``dynamic_shapes`` of the step; what is not named is static."""
    if isinstance(given, dict):
        return {name: given.get(name) for name in step.names} | given
    if given is None:
        return None
    found = list(given)
    return tuple(found + [None] * (len(step.names) - len(found)))


def _require_kept(program: torch.export.ExportedProgram) -> None:
    """Refuse a model that changes its parameters or arguments beside the optimiser."""
    for spec in program.graph_signature.output_specs:
        if spec.kind in (OutputKind.PARAMETER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            raise NoGradientError(
                f"the model writes to {spec.target!r} in place: it is a parameter or an argument",
                hint="write to a copy of it, or make it a buffer",
            )


def _join_shared(program: torch.export.ExportedProgram, step: StepModule) -> None:
    """A parameter that has several names is one value, whose gradient is the sum of those by each."""
    first = {id(each): name for name, each in step.named_parameters()}
    named = {name: first[id(each)] for name, each in step.named_parameters(remove_duplicate=False)}
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs = {spec.target: nodes[spec.arg.name] for spec in program.graph_signature.input_specs}
    for name, canonical in named.items():
        if name != canonical and name in inputs:
            if canonical not in inputs:
                raise NoGradientError(f"the parameter {canonical!r} is {name!r} too, and the program knows but one")
            inputs[name].replace_all_uses_with(inputs[canonical])


def _trained(
    program: torch.export.ExportedProgram, step: StepModule, optimizer: torch.optim.Optimizer | None
) -> tuple[dict[str, Trained], dict[str, float]]:
    """The parameters that the step changes, by their names in the program, and the learning rates by name."""
    named = dict(step.named_parameters(remove_duplicate=False))
    # One that has several names has its first.
    first = {id(each): name for name, each in step.named_parameters()}
    parameters = [name for name in named if name in program.state_dict and named[name].requires_grad]
    known = {name: named[name] for name in parameters if first[id(named[name])] == name}
    if optimizer is None:
        return {name: Trained(name.removeprefix(f"{MODEL}."), None, {}, 0) for name in known}, {}
    kind = require_known(optimizer)
    groups = optimizer.param_groups
    names = ["learning_rate"] if len(groups) == 1 else [f"learning_rate.{i}" for i in range(len(groups))]
    rates = {name: float(group["lr"]) for name, group in zip(names, groups, strict=True)}
    found: dict[str, Trained] = {}
    for i, group in enumerate(groups):
        update = kind(group)
        for parameter in group["params"]:
            if not any(each is parameter for each in named.values()):
                raise UsageError(
                    f"the optimiser has a parameter of shape {list(parameter.shape)} that is none of the model's",
                    hint="give the optimiser of this model; parameters of the loss belong to a loss that is a module",
                )
            for name, each in known.items():
                if each is parameter:
                    state = update.state(parameter.detach(), optimizer.state.get(parameter, {}))
                    found[name] = Trained(name.removeprefix(f"{MODEL}."), update, state, i)
    return found, rates


def _tell_state(model: ir.Model, step: Step, rates: list[str]) -> None:
    """Give inputs that are state their default values, and say in the metadata what follows what."""
    inputs = {value.name: value for value in model.graph.inputs}
    for name, value in step.values.items():
        array = value.detach().cpu().contiguous().numpy()
        inputs[name].const_value = ir.tensor(array, name=name)
        model.graph.register_initializer(inputs[name])
    told = {"loss": "loss", "rates": [name for name in rates if name in inputs], "state": step.feeds}
    model.metadata_props[TRAINING] = json.dumps(told)
