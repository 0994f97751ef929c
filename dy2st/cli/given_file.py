"""``dy2st check --onnx FILE``: a file that is there already, compared in place of one that is exported now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.errors import Dy2stError, UsageError
from dy2st.parity.checking import captured, require_state
from dy2st.parity.file_facts import dropped_in, graph_counts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from torch.export import ExportedProgram

    from dy2st.cli.inputs import ExampleInputs
    from dy2st.cli.target import Target
    from dy2st.parity.stages import Reference


def given_file(options: argparse.Namespace) -> Path | None:
    """The file of ``--onnx``, which can be read as one; None without the option.

    Raises:
        UsageError: there is no such file, or an option asks for another one.
        OnnxError: it is no ONNX file.
    """
    if options.onnx is None:
        return None
    file = Path(options.onnx)
    if not file.is_file():
        raise UsageError(f"--onnx {file}: there is no such file")
    for name, value in (("--opset", options.opset), ("--opsets", options.opsets)):
        if value:
            raise UsageError(f"{name} is for files that are written, and --onnx {file} is there already")
    graph_counts(file)
    return file


def program_beside(
    file: Path,
    target: Target,
    options: argparse.Namespace,
    given: ExampleInputs,
    references: Sequence[Reference],
    step: Callable[[str], None],
) -> tuple[ExportedProgram | None, str]:
    """The model's own program: its paths are those to cover, and its lines those of the file, if that is ours.

    None for a model that dy2st refuses, with the reason.
    """
    try:
        program, _ = captured(
            target.model,
            references,
            dynamic_shapes=given.dynamic_shapes,
            allow_specialize=options.allow_specialize,
            drop_guards=options.drop_guards or bool(dropped_in(file)),
            random_inputs=options.random_inputs,
            progress=step,
            state=options.state,
        )
    except Dy2stError as error:
        place = "" if error.location is None else f"{error.location.filename}:{error.location.line}: "
        return None, f"the paths are not known, since the model can't be captured: {place}{error.code}: {error.what}"
    require_state(file, program)
    return program, ""
