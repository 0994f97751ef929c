"""What to make of exceptions that Python, torch and other code raise under a capture."""

from __future__ import annotations

import dis
import inspect
import re
import traceback
from types import CodeType, TracebackType

from dy2st.errors import (
    Dy2stError,
    GeneratorError,
    Location,
    NumpyError,
    RecursionDepthError,
    StagedNumberError,
    StagingError,
    UnconvertedConditionError,
    UnsettledStateError,
)
from dy2st.source.rewriting import is_rewritten_code
from dy2st.source.user_frames import innermost, is_ours, is_users, place, user_frame, users_traces
from dy2st.tracing.custom_functions import CustomFunction
from dy2st.values.references import refer_to_lists
from dy2st.values.staged_text import UNKNOWN

# From how many open calls of one function on it is a recursion.
MANY_CALLS = 20


def endless(error: RecursionError, location: Location | None) -> StagingError:
    """The error of a function that calls itself without end, or of a value that nests ever more deeply."""
    traces = [trace for trace in users_traces(error.__traceback__) if is_rewritten_code(trace.tb_frame.f_code)]
    codes = [trace.tb_frame.f_code for trace in traces]
    often = max(codes, key=codes.count, default=None)
    if often is None or codes.count(often) < MANY_CALLS:
        return UnsettledStateError(
            "the value of this nests ever more deeply: how often it is computed is data-dependent",
            hint="append to a list, or grow a tensor (torch.cat), in place of nesting containers",
            location=location,
        ).or_else(refer_to_lists)
    calling = next(trace for trace in traces if trace.tb_frame.f_code is often)
    return RecursionDepthError(
        f"{often.co_qualname}() calls itself, and a tensor decides how deeply: the recursion does not end while the"
        " program is captured",
        hint="write it as a while loop",
        location=place(often, calling.tb_lasti, calling.tb_lineno),
    )


def unconverted(trace: TracebackType | None, location: Location | None) -> StagingError:
    """The error of a condition that torch met: in code that is left as it is, or behind a call in converted code."""
    frame = user_frame(trace)
    code = None if frame is None else frame.f_code
    lost = sourceless(trace)
    if lost is not None:
        return UnconvertedConditionError(
            f"a tensor decides a condition in {lost.co_name}(), whose source can't be found ({lost.co_filename})",
            hint="define it in a file or in a notebook cell",
            location=location,
        )
    if code is not None and code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        kind = "generator" if code.co_flags & inspect.CO_GENERATOR else "coroutine"
        return GeneratorError(
            f"a tensor decides a condition in the {kind} {code.co_name}(); dy2st leaves {kind}s as they are",
            hint="write it as a function that returns a list or a tensor, or move the condition out of it",
            location=location,
        )
    if code is None or location is None or is_rewritten_code(code):
        called = _callee(location)
        return UnconvertedConditionError(
            f"{called} needs the value of a data-dependent condition, size or number",
            hint="use a torch function that keeps it a tensor, or write its loop and conditions in a function of yours",
            location=location,
        )
    if any(frame.f_code is CustomFunction._fake.__code__ for frame, _ in traceback.walk_tb(trace)):
        return UnconvertedConditionError(
            f"a tensor decides a condition in {code.co_name}() of a torch.autograd.Function, which is one operator"
            " where gradients may be wanted",
            hint="choose with torch.where there; dy2st.export, which wants no gradients, converts its forward",
            location=location,
        )
    return UnconvertedConditionError(
        f"a tensor decides a condition in {code.co_name}(), which dy2st does not convert",
        hint="let dy2st convert it: no not_to_static mark, and a source that can be read from a file",
        location=location,
    )


def _callee(location: Location | None) -> str:
    """What is called at a place, as the source names it."""
    if location is None or location.text is None or location.column is None:
        return "this"
    expression = location.text[location.column : location.end_column]
    called = re.match(r"[\w.]+(?=\()|.*(?=\()", expression)
    return f"{called[0]}()" if called and called[0] else f"`{expression}`" if expression else "this"


def known_by_its_text(error: BaseException, location: Location | None) -> Dy2stError | None:
    """Exceptions whose text says that Python was given what is data-dependent."""
    text = str(error)
    if ".numpy() is not supported for tensor subclasses" in text:
        return NumpyError(
            "numpy is used on a data-dependent tensor",
            hint="use the torch function of the same name",
            location=location,
        )
    if isinstance(error, ValueError) and "for islice() must be" in text:
        # itertools.islice hides what a number's __index__ says.
        return StagedNumberError(
            "itertools.islice() is given a number that is known only when the graph runs",
            hint="slice a list, or write a for loop that breaks",
            location=location,
        )
    if UNKNOWN in text and not isinstance(error, Dy2stError):
        return StagedNumberError(
            "Python reads a text made from a value that is known only when the graph runs",
            hint="compute with the value itself: compare numbers, not their texts",
            location=location,
        )
    if isinstance(error, TypeError) and re.search(r"\bNumber\b", text):
        return StagedNumberError(
            f"code that dy2st does not convert is given a number that is known only when the graph runs: {text}",
            hint="compute with Python operators or torch functions",
            location=location,
        )
    return None


def sourceless(trace: TracebackType | None) -> CodeType | None:
    """The function made by ``exec`` or typed into a prompt that met a condition; None if other code met it."""
    found: CodeType | None = None
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "")
        if is_users(code.co_filename):
            found = None
        elif code.co_filename in ("<string>", "<stdin>") and not module.startswith("torch"):
            found = code
        trace = trace.tb_next
    return found


def is_defect(error: Exception) -> bool:
    """Whether code of ours failed, rather than saying what Python says of wrong arguments.

    What a C function raises that ours calls for the user's code (``function(*args, **kwargs)``) shows ours as the
    innermost frame.
    """
    trace = innermost(error.__traceback__)
    if trace is None or not is_ours(trace.tb_frame.f_code.co_filename):
        return False
    code = trace.tb_frame.f_code
    instruction = dis.opname[code.co_code[trace.tb_lasti]]
    deliberate = instruction == "RAISE_VARARGS" and not isinstance(error, AssertionError)
    return not deliberate and instruction != "CALL_FUNCTION_EX"
