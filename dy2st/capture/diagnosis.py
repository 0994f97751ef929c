"""What an exception of an export means for the user's model, told at the user's line."""

from __future__ import annotations

import ast
import contextlib
import re
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from dy2st.capture.foreign import endless, is_defect, known_by_its_text, unconverted
from dy2st.conversion import entry_function
from dy2st.errors import (
    CaptureError,
    DifferentDtypesError,
    DtypeWarning,
    Dy2stError,
    LeakedValueError,
    Location,
    OnnxError,
    OutputError,
    RaisedError,
    RaiseError,
    StagedPathError,
    StagingError,
    UntranslatedError,
    UsageError,
)
from dy2st.plan import Alternative, plan
from dy2st.sizes.lowering import place_of
from dy2st.source.assigning_lines import inside
from dy2st.source.find import find
from dy2st.source.find import location as location_of_code
from dy2st.source.rewriting import original
from dy2st.source.user_frames import is_users, node_location, raising_instruction, user_location
from dy2st.staging.flow import RAISES, StagedJump
from dy2st.staging.session import Session
from dy2st.values.describing import article, one_line

# Where a program keeps the dtypes of its results of which eager's is a lower one on some path.
PROMOTED = "dy2st.promoted"
# torch's ONNX exporter; told apart by name, since the classes are private.
_EXPORTER_ERRORS = {"ConversionError", "DispatchError", "OnnxExporterError", "PassError", "TorchExportError"}


def translated(error: BaseException, *, staged: bool) -> Dy2stError | None:
    """Our error for one that a capture met, or None to let it pass; ``staged`` says whether a subgraph was open."""
    if isinstance(error, Dy2stError):
        if error.location is None:
            origin = error.origin if isinstance(error, StagingError) else None
            error.location = user_location(error.__traceback__) or origin
        return None
    location = user_location(error.__traceback__)
    if isinstance(error, RecursionError):
        return endless(error, location)
    if isinstance(error, GuardOnDataDependentSymNode):
        return unconverted(error.__traceback__, location)
    known = known_by_its_text(error, location)
    if known is not None or not staged or not isinstance(error, (Exception, SystemExit)):
        return known
    if isinstance(error, SystemExit) or raising_instruction(error.__traceback__) == "RAISE_VARARGS":
        return RaiseError(
            f"{one_line(error)} is raised under a tensor condition or in a staged loop",
            hint="a graph can't raise here; remove the check, or write it as an if with a raise in converted code",
            location=location,
        )
    return StagedPathError(
        f"this fails on a data-dependent path: {one_line(error)}",
        hint="both arms of a tensor condition are traced, whichever the inputs take: make each work by itself",
        location=location,
    )


@contextlib.contextmanager
def at_the_users_line(capture: Session, call: Any) -> Iterator[None]:
    """Errors of the capture become ours, with the user's file and line; the cause is kept.

    An error behind the last line of ``call`` is one of what it returns.
    """
    try:
        yield
    except StagedJump as jump:
        raise RaiseError(
            "the model raises an exception on every path",
            hint="raise under a condition that some input does not meet",
            location=jump.flow.env.get(RAISES),
        ) from jump
    except (Exception, SystemExit) as raised:
        # What follows a failure is of no matter, and can't always be gone on with.
        failing = capture.failing
        error = raised if failing is None else failing.error
        found = translated(error, staged=capture.depth > 1)
        final = error if found is None else found
        if isinstance(final, StagingError) and final.otherwise is not None:
            final.otherwise()
        if found is not None and found.location is None and failing is not None:
            found.location = failing.location
        if isinstance(error, Dy2stError) and error.location is None:
            tell_returns(error, call)
        if found is None:
            raise
        raise found from error


def defined_at(function: Any) -> Location | None:
    """Where a function is defined; None of one that is written in C."""
    code = getattr(function, "__code__", None)
    return None if code is None else location_of_code(code)


E = TypeVar("E", bound=Dy2stError)


def located(error: E, function: Any) -> E:
    """An error, which tells where the user's function is defined if it tells no other place."""
    found = defined_at(function)
    if error.location is None and found is not None and is_users(found.filename):
        error.location = found
    return error


def untraceable(name: str, function: Any, error: Exception) -> CaptureError:
    """What torch's tracers raise of a function's arguments or modules before any line of its runs."""
    return CaptureError(
        f"{name} can't be traced: {one_line(error)}",
        hint="run it as it is, and make static what is inside of it",
        location=defined_at(function),
    )


def tell_returns(error: Dy2stError, call: Any) -> None:
    """Place an error of what a function returns: at its ``return``; if it has several, at the last, and name all."""
    error.location, words = _returns(call)
    error.what += words


def refuse_other_types(what: str, call: Any) -> NoReturn:
    """A result is of another type or dtype in eager on some path; where numbers are tensors, they may stay numbers."""
    plan().takes(Alternative.NUMBERS_STAY_NUMBERS)
    hint = "return a tensor of one dtype on every path: eager would give the caller another type than the program does"
    error = DifferentDtypesError(what, hint=hint)
    tell_returns(error, call)
    raise error


def warn_of_results(program: ExportedProgram, cautions: Mapping[str, torch.dtype | None], call: Any) -> None:
    """Give a ``DtypeWarning`` for each, at the line of the return; the program keeps the dtypes."""
    program.graph_module.meta[PROMOTED] = frozenset(cautions.values()) - {None}
    location, words = _returns(call) if cautions else (None, "")
    for each in cautions:
        if location is None:
            warnings.warn(each, DtypeWarning, stacklevel=2)
        else:
            warnings.warn_explicit(each + words, DtypeWarning, location.filename, location.line)


def _returns(call: Any) -> tuple[Location | None, str]:
    """The last ``return`` of a function, and in words what else matters to what it returns."""
    try:
        function = entry_function(call)
        (found, *_) = find(original(function))
    except (Dy2stError, ValueError):
        return None, ""
    filename = function.__code__.co_filename
    if isinstance(found.node, ast.Lambda):
        return node_location(filename, found.node.body), ""
    returns = [node for statement in found.node.body for node in inside(statement) if isinstance(node, ast.Return)]
    location = node_location(filename, returns[-1] if returns else found.node)
    if len(returns) > 1:
        return location, f" (returns in {_lines(returns)})"
    if returns and isinstance(value := returns[0].value, ast.Name):
        stores = [n for n in ast.walk(found.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        own = [n for n in stores if n.id == value.id]
        if len(own) > 1:
            return location, f" ({value.id!r} is assigned in {_lines(own)})"
    return location, ""


def _lines(nodes: Sequence[ast.stmt | ast.expr]) -> str:
    *lines, last = sorted({node.lineno for node in nodes})
    return f"lines {', '.join(map(str, lines))} and {last}" if lines else f"line {last}"


def captured_failure(error: BaseException) -> Dy2stError | None:
    """Our error for what torch.export says of a program as a whole, or None."""
    name = type(error).__name__
    unknown = re.match(r"Found <class '([^']+)'> in output", str(error))
    if unknown:
        home, _, kind = unknown[1].rpartition(".")
        ours = home.startswith("dy2st.staging.containers.")
        what = "a container with data-dependent keys, or a list in one" if ours else article(kind)
        return OutputError(
            f"the model returns {what}, which a program can't return",
            hint="return tensors and numbers, in tuples, lists, dicts or dataclasses",
        )
    if isinstance(error, RuntimeError) and "fake tensor in the exported program constant" in str(error):
        return LeakedValueError(
            "a tensor made under a tensor condition or in a staged loop is used after it, unseen by dy2st",
            hint="assign it to a variable on every path (a walrus inside and/or, or a cache, hides it)",
        )
    if name == "ConstraintViolationError":
        first = str(error).splitlines()[0].replace("int_oo", "∞")
        return CaptureError(
            f"the example's sizes are not those that are declared: {first}",
            hint="give an example whose sizes lie within the bounds of its dynamic dimensions",
        )
    if name == "UserError" and "Constraints violated" in str(error):
        lines = [line.strip() for line in str(error).splitlines() if line.strip().startswith("- ")]
        return CaptureError(
            "a size that is declared dynamic was fixed by the capture: " + " ".join(lines or [str(error)]),
            hint="give that dimension a static size, or don't branch on it in code that dy2st does not convert",
            location=user_location(error.__traceback__),
        )
    return None


@contextlib.contextmanager
def diagnosing(call: Any = None) -> Iterator[None]:
    """Raise an exception of an export as the error that explains it; a defect of dy2st passes as it is.

    ``call`` is the user's function, to name the line of what it returns.

    Raises:
        OnnxError: torch's ONNX exporter failed.
        UntranslatedError: it has no translation of an operator.
        RaisedError: a line of the user's raised while it was traced.
    """
    try:
        yield
    except Dy2stError:
        raise
    except Exception as error:
        own = _own_cause(error)
        if own is not None:
            own.location = own.location or _lowered_at(error)
            raise own from error
        explained = captured_failure(error) or _explained(error)
        if explained is None:
            raise
        if explained.location is None and isinstance(explained, (LeakedValueError, OutputError)) and call is not None:
            tell_returns(explained, call)
        raise explained from error


def _own_cause(error: BaseException) -> Dy2stError | None:
    """An error of ours that torch has wrapped into one of its own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Dy2stError):
            return cause
        cause = cause.__cause__
    return None


# What Python raises for arguments that torch.export can't take.
_OF_ARGUMENTS = (IndexError, OverflowError, TypeError, ValueError)


def _explained(error: Exception) -> Dy2stError | None:
    if _EXPORTER_ERRORS & {kind.__name__ for kind in type(error).__mro__}:
        return _exporter_error(error)
    location = user_location(error.__traceback__)
    if location is None and (type(error).__name__ == "UserError" or type(error) in _OF_ARGUMENTS):
        what = f"torch.export does not take these arguments or dynamic shapes: {one_line(error)}"
        return None if is_defect(error) else UsageError(what)
    if location is None or is_defect(error):
        return None
    known = known_by_its_text(error, location)
    if known is not None:
        return known
    what = f"this raises while it is traced: {one_line(error)}"
    hint = next((hint for part, hint in HINTS.items() if part in str(error)), WITHOUT_VALUES)
    return RaisedError(what, hint=hint, location=location)


# Part of an exception's text -> what to write instead.
WITHOUT_VALUES = "a trace has shapes and dtypes, but no values: compute with torch functions on tensors"
HINTS = {
    "Cannot access storage of": "a tensor condition under torch.vmap or torch.func can't be staged: write a for loop",
    "does not require grad": "say x.requires_grad_() before what is differentiated, and compute that with gradients on",
    "int too big to convert": "a data-dependent number is an int64: keep it within that range",
    "Cannot access data pointer": "a trace has no memory to look at: compute with torch functions on tensors",
    "not available for 'meta' device": "a trace has no memory to look at: compute with torch functions on tensors",
}


def _exporter_error(error: Exception) -> OnnxError:
    missing = re.search(r"No ONNX function found for <OpOverload\(op='([^']+)'", str(error))
    if missing:
        hint = "compute it with simpler operators, or try a newer opset"
        if missing[1].partition(".")[0] not in _OF_TORCH:
            hint = f"write one: @dy2st.onnx.translate(torch.ops.{missing[1]}) over a function that makes ONNX nodes"
        what = f"there is no ONNX translation of {missing[1]}"
        return UntranslatedError(what, hint=hint, location=_lowered_at(error))
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    first = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    what = f"torch's ONNX exporter fails: {type(cause).__name__}: {first}"
    hint = "an onnxscript.script in a translation takes opset18" if "Opset mismatch when inlining" in first else ""
    return OnnxError(what, hint=hint, location=_lowered_at(error))


# Namespaces of operators that torch has itself.
_OF_TORCH = {"aten", "prims", "prim", "higher_order", "quantized"}


def _lowered_at(error: BaseException) -> Location | None:
    """The user's line of the node that was being decomposed or translated, as far as the tracebacks tell."""
    found: Location | None = None
    cause: BaseException | None = error
    while cause is not None:
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            node = frame.f_locals.get(_NODES.get(frame.f_code.co_name, ""))
            found = (place_of(node) if isinstance(node, fx.Node) else None) or found
        cause = cause.__cause__
    return found


# Functions of torch.fx and torch.onnx that take a graph's nodes one by one -> their variable for it.
_NODES = {"run_node": "n", "_translate_fx_graph": "node"}
