"""``dy2st.onnx.export``: all parameters of ``torch.onnx.export``, and those that only dy2st has.

Source: ``torch.onnx.export`` of torch 2.13, https://docs.pytorch.org/docs/stable/onnx_export.html.
"""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any

import onnx
import torch

from dy2st.capture.number_inputs import InputsAs
from dy2st.capture.stateful_program import StateOption
from dy2st.drop_in.artifacts import Artifacts
from dy2st.drop_in.example_call import ExampleCall, example_call, require_forms, require_mode
from dy2st.errors import Dy2stError, OptionWarning, ParityError, UsageError
from dy2st.onnx.exporting import export as export_call
from dy2st.onnx.exporting import save
from dy2st.onnx.passes.pipeline import NAMES, choosing
from dy2st.onnx.passes.varying_outputs import OptionalOutputs
from dy2st.onnx.passes.weight_inputs import without_values
from dy2st.onnx.runtime.side_metadata import Metadata, place_metadata, require_metadata
from dy2st.parity.checking import check
from dy2st.parity.inputs import InputSet
from dy2st.report.parity_report import ParityReport


def export(  # noqa: PLR0913 - the signature is that of torch.onnx.export
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | io.BytesIO | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    fallback: bool = False,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None,
    training: Any = torch.onnx.TrainingMode.EVAL,
    operator_export_type: Any = torch.onnx.OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
    allow_specialize: Iterable[int | str] = (),
    drop_guards: bool = False,
    state: StateOption = None,
    optional_outputs: OptionalOutputs = "optional",
    inputs_as: InputsAs = MappingProxyType({}),
    random_inputs: bool = False,
    without_passes: Collection[str] = (),
    metadata: Metadata = "inside",
) -> torch.onnx.ONNXProgram:
    """Export ``model`` to ONNX, with its tensor control flow as ``If`` and ``Loop`` nodes.

    A call of ``torch.onnx.export`` works with this function in its place. What dy2st has no way to do is an error of
    one line.

    Args:
        model: an ``nn.Module``, a function, a bound method or a callable object; a ``torch.onnx.ExportableModule``; or
            an ``ExportedProgram`` of ``dy2st.export`` or ``torch.export.export``.
        args: the positional arguments of one example call; a tensor alone is one. A dict at the end is keyword
            arguments, where ``kwargs`` has none and the model takes them.
        f: the file to write, whole or not at all, or a ``BytesIO``; without it nothing is written.
        kwargs: the keyword arguments of the example call.
        verbose: print a line for each step.
        input_names: names of the graph's inputs, by default those of the signature.
        output_names: names of the graph's outputs, by default those of the variables that the model returns, or the
            keys and fields of what it returns (``scores``, ``state.h``).
        opset_version: the ONNX opset, 18 or later; 20 by default.
        dynamo: True; there is no other exporter here.
        external_data: keep weights beside the file if they are larger than protobuf allows in it.
        dynamic_shapes: which sizes may change, as for ``torch.export.export``, or by name: ``{"x": {0: "batch"}}``. A
            name becomes a dimension's name.
        custom_translation_table: functions that write an operator as ONNX, by operator. See ``dy2st.onnx.translate``.
        report: check the file on the example, and write what was found as Markdown into ``artifacts_dir``; an error of
            the export too.
        optimize: False leaves out the passes that make the file smaller and faster. They change no value.
        verify: check the file on the example, as ``dy2st.check`` does, before it is written.
        profile: write which functions take the time into ``artifacts_dir``.
        dump_exported_program: write the program that was translated into ``artifacts_dir``.
        artifacts_dir: the folder of these files; it is made if it is not there.
        fallback: False; dy2st never falls back on tracing one path.
        export_params: with False, parameters and buffers are inputs without values, and the file has no weights.
        keep_initializers_as_inputs: parameters and buffers are inputs, with their values as defaults. A value that is
            given when the file runs takes effect everywhere.
        dynamic_axes: which sizes may change, by the names of the file's inputs: ``{"x": {0: "batch"}, "y": [0]}``. What
            it says of outputs follows from the inputs. ``dynamic_shapes`` go before it.
        training: with ``TrainingMode.TRAINING`` the model has to be in train mode. It is exported as it is.
        operator_export_type: ``OperatorExportTypes.ONNX``.
        do_constant_folding: True; False has no effect, and there is an ``OptionWarning``.
        custom_opsets: the versions of the domains of one's own, by domain.
        export_modules_as_functions: False.
        autograd_inlining: as ``do_constant_folding``.
        allow_specialize: lines (``12`` of the model's own file, ``"models.py:12"``) at which a dynamic size may be
            fixed at the example's; what was fixed stands in the file's metadata, as JSON under ``dy2st.specialized``.
        drop_guards: leave out the tests at which eager may raise, as for ``dy2st.export``; what was dropped stands in
            the file's metadata, as JSON under ``dy2st.dropped_guards``.
        state: what becomes of what the model changes in a call and reads in the next one: buffers, and tensors,
            numbers, tuples and lists in attributes. ``"io"``, the default, makes it inputs (``encoder.h``) and
            outputs (``encoder.h_next``) behind the model's own; the inputs have the present values as defaults.
            ``dy2st.onnx.Runner`` feeds one call's outputs to the next. With ``"forget"`` the file starts afresh in
            each call, with a ``StateWarning``; ``"refuse"`` raises an error. What is what stands in the file's
            metadata, as JSON under ``dy2st.state``.
        optional_outputs: how a result that is a tensor on some paths and ``None`` on others is written: as ONNX's
            optional, or with ``"flag"`` as a tensor and a bool output (``mask`` and ``mask_present``) for runtimes that
            know no optionals; where the bool is false, the tensor's values say nothing.
        inputs_as: the arguments whose Python numbers are inputs of the file and no constants: ``{"steps": "tensor"}``.
            An int is an int64 input, a float a double, a bool a bool, each without dimensions.
        random_inputs: what the model draws at random are inputs of the file, ``random_0``, ``random_1`` in order: for a
            dropout ones and zeros. Given the same, eager and the file compute the same.
        without_passes: passes to leave out, by name; ``verbose`` prints the names, and what each pass did.
        metadata: where source lines and the like of nodes go: ``"inside"`` the file, ``"side"`` into a file beside it
            (``f`` and ``.metadata.json``, read by checks and reports), or ``"none"``.

    A list of data-dependent length is a sequence of tensors, a text that depends on the path a string; what each output
    is stands in the file's metadata then, as JSON under ``dy2st.outputs``.

    Raises:
        ParityError: ``verify`` is said, and the file computes something else than eager.
        CarriedStateError: what lives on between calls can't be inputs and outputs; or ``state`` is ``"refuse"``.
        StagingError: control flow or state that can't be staged, at the user's line.
        SpecializedError: a size that is declared dynamic would be fixed.
        CaptureError: ``torch.export`` could not capture the model.
        RandomInputError: what is drawn in a loop or a branch can't be inputs.
        OnnxError: an operator without a translation, an opset that is too old, a file that can't be written.
        UsageError: an option has a value that dy2st has no way to honour, or names what there is not.
    """
    _require_honoured(
        dynamo=dynamo,
        fallback=fallback,
        do_constant_folding=do_constant_folding,
        export_modules_as_functions=export_modules_as_functions,
        autograd_inlining=autograd_inlining,
        operator_export_type=operator_export_type,
    )
    require_mode(model, training)
    require_metadata(metadata)
    if not isinstance(f, (str, os.PathLike, io.BytesIO, NoneType)):
        raise UsageError(f"f is of type {type(f).__name__}, and no path", hint="a path, a BytesIO or None")
    require_forms(
        opset_version=opset_version,
        names={"input_names": input_names, "output_names": output_names},
        mappings={
            "kwargs": kwargs,
            "dynamic_axes": dynamic_axes,
            "custom_translation_table": custom_translation_table,
            "custom_opsets": custom_opsets,
        },
    )
    call = example_call(model, args, kwargs, dynamic_shapes, dynamic_axes, input_names, output_names, inputs_as)
    tell = _printed if verbose else _silent
    artifacts = Artifacts(model, artifacts_dir, needed=report or profile or dump_exported_program, told=tell)
    weights_are_inputs = keep_initializers_as_inputs or not export_params
    try:
        without = without_passes if optimize else NAMES
        with artifacts.profiled(wanted=profile), choosing(without) as done:
            made = export_call(
                model,
                call.args,
                kwargs=call.kwargs,
                dynamic_shapes=call.dynamic_shapes,
                input_names=call.input_names,
                output_names=call.output_names,
                opset_version=opset_version,
                allow_specialize=allow_specialize,
                drop_guards=drop_guards,
                state=state,
                optional_outputs=optional_outputs,
                inputs_as=inputs_as,
                random_inputs=random_inputs,
                custom_translation_table=custom_translation_table,
                weights_are_inputs=weights_are_inputs,
                progress=tell,
            )
        for each in done:
            tell(str(each))
        made.model.opset_imports.update(custom_opsets or {})
        if dump_exported_program and made.exported_program is not None:
            artifacts.program(made.exported_program)
        if verify or report:
            tell("checking")
            options = {"state": state, "inputs_as": inputs_as, "random_inputs": random_inputs}
            found = _checked(model, call, made, options)
            if report:
                artifacts.report(found)
            if verify:
                found.raise_if_different()
    except Dy2stError as error:
        if report and not isinstance(error, ParityError):  # of a difference there is a report already
            artifacts.report(error)
        raise
    if not export_params and made.exported_program is not None:
        without_values(made.model, made.exported_program)
    if isinstance(f, io.BytesIO):
        onnx.save(made.model_proto, f)
    elif f is not None:
        save(made, Path(f), external_data=external_data)
        place_metadata(Path(f), metadata)
        tell(f"wrote {os.fspath(f)}")
    return made


def _require_honoured(**options: Any) -> None:
    """Accept options that ask for what dy2st does, or for less; warn of the latter, which is as right without them.

    Raises:
        UsageError: one asks for something else.
    """
    options["operator_export_type"] = getattr(options["operator_export_type"], "name", "")
    for name, value in options.items():
        honoured, why = _FIXED[name]
        if value == honoured:
            continue
        if name in _HARMLESS:
            warnings.warn(f"{name}={value!r} has no effect: {why}", OptionWarning, stacklevel=3)
        else:
            raise UsageError(f"{name}={value!r} can't be honoured: {why}", hint=f"leave {name} out")


# What an option may be, and why it may be nothing else.
_FIXED: dict[str, tuple[Any, str]] = {
    "dynamo": (True, "the TorchScript exporter writes one path of the model"),
    "fallback": (False, "an exporter that traces one path may compute something else than eager"),
    "do_constant_folding": (True, "translations rely on folding, and it changes no value"),
    "export_modules_as_functions": (False, "the nodes of modules are written in line; their metadata names the source"),
    "autograd_inlining": (True, "the forward of an autograd.Function is part of the graph"),
    "operator_export_type": ("ONNX", "the file has operators of ONNX, and those of custom_translation_table"),
}

_HARMLESS = {"do_constant_folding", "autograd_inlining"}


def _checked(model: Any, call: ExampleCall, made: torch.onnx.ONNXProgram, options: Mapping[str, Any]) -> ParityReport:
    """Compare the model, or the program that was given in its place, with the file on the example."""
    is_program = isinstance(model, torch.export.ExportedProgram)
    if is_program and not call.args and not call.kwargs:
        if model.example_inputs is None:
            raise UsageError("there is nothing to check on: the program has no example inputs", hint="args=(x,)")
        call = replace(call, args=model.example_inputs[0], kwargs=model.example_inputs[1])
    with tempfile.TemporaryDirectory(prefix="dy2st-") as folder:
        file = Path(folder) / "model.onnx"
        save(made, file, external_data=True)
        example = InputSet("example", call.args, call.kwargs)
        return check(
            model.module() if is_program else model,
            [example],
            onnx_file=file,
            dynamic_shapes=call.dynamic_shapes,
            **options,
        )


def _printed(line: str) -> None:
    print(f"[dy2st] {line}")  # noqa: T201 - that is what verbose asks for


def _silent(_: str) -> None:
    """Who is told the steps without verbose."""
