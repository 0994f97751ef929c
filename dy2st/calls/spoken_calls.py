"""``print``, loggers and ``warnings.warn`` in code whose program is to run in its place: it says the same in each run.

A program says what consists of constants, numbers and tensors that want no gradient (the text of one that does has its
history in it), or of texts put together of their texts.
"""

from __future__ import annotations

import builtins
import functools
import logging
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch.utils import _pytree as pytree

from dy2st.calls import loguru_calls
from dy2st.calls.asked_again import Answer
from dy2st.calls.builtins.printing import mentions
from dy2st.calls.gradients.flags import may_want_gradients
from dy2st.calls.outside_world import LEVELS, Constants, filters_are_local
from dy2st.errors import UnguardedError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import frames_of_user, location_of, users_frame
from dy2st.staging.session import Session
from dy2st.tracing.messages import Message, Place, Put
from dy2st.values.number import Number, number_tensor
from dy2st.values.staged_text import parts_of

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, types.EllipsisType)
# What is said as one, though it has parts.
_WHOLE = (Number, torch.Size)
_STREAMS = ("stdout", "stderr")


class Messages:
    """Those of the program that is captured, which keeps them; a part of the session of an export."""

    def __init__(self) -> None:
        self.said: list[Message] = []


class _UnsayableError(Exception):
    """A program can't say it; the hint says what it can."""


def spoken(capture: Session, function: Any) -> Callable[..., Any] | None:
    """What to call in place of a function that says something, if a program is to say it."""
    constants = current().part(Constants)
    if constants.everything or not constants.speaks:
        return None
    speaks = _speaker(function, constants)
    if speaks is None:
        return None
    if function is warnings.warn and filters_are_local():
        _refuse(function, "call it outside of catch_warnings(), whose filters are not there when a program runs")

    def say(*args: Any, **kwargs: Any) -> Any:
        """Have the program say it.

        Raises:
            UnguardedError: it can't.
        """
        values: list[torch.Tensor] = []
        try:
            speak, args, kwargs = speaks(*args, **kwargs)
            said = _put(capture, values, speak, (args, kwargs))
        except _UnsayableError as error:
            _refuse(function, str(error))
        message = Message(said)
        current().part(Messages).said.append(message)
        capture.guards.say(values, message.number, location_of(users_frame()))

    return say


def _refuse(function: Any, hint: str) -> NoReturn:
    raise UnguardedError(
        f"{function.__name__}() is given what a run of the program can't say again",
        hint=hint,
        location=location_of(users_frame()),
    )


def _put(capture: Session, values: list[torch.Tensor], function: Callable[..., Any], given: Any) -> Put:
    """A call, with places for the tensors among its arguments, which are added to ``values``."""
    leaves, spec = pytree.tree_flatten(given, is_leaf=lambda each: isinstance(each, _WHOLE))
    return Put(function, [_placed(capture, values, leaf) for leaf in leaves], spec)


def _placed(capture: Session, values: list[torch.Tensor], leaf: Any) -> Any:
    """What stands in a message for a leaf of its arguments; tensors are added to ``values``."""
    if isinstance(leaf, Number):
        values.append(leaf.tensor)
        return Place(len(values) - 1, leaf.kind)
    if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        kinds = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
        values.append(number_tensor(leaf))
        return Place(len(values) - 1, kinds[type(leaf)])
    if isinstance(leaf, torch.Size):
        values.append(torch.stack([number_tensor(size) for size in leaf]) if leaf else torch.empty(0))
        return Place(len(values) - 1, torch.Size)
    if isinstance(leaf, torch.Tensor):
        if may_want_gradients(capture, [leaf]):
            raise _UnsayableError("say it of x.detach()")
        values.append(leaf)
        return Place(len(values) - 1)
    if mentions(leaf):
        try:
            parts = parts_of(leaf)
        except ValueError as error:
            hint = "give it the values themselves, not a text that is made of them: print('loss', loss)"
            raise _UnsayableError(hint) from error
        placed = [each if isinstance(each, str) else _put(capture, values, each[0], (each[1], {})) for each in parts]
        return Put("".join, *pytree.tree_flatten(((placed,), {})))
    if not isinstance(leaf, (*_CONSTANTS, type)):
        raise _UnsayableError(f"say a constant, a number or a tensor; this is a {type(leaf).__name__}")
    return leaf


def _speaker(function: Any, constants: Constants) -> Callable[..., Any] | None:
    """Gives, of the arguments of a call, what a program calls and with which; None of what says nothing."""
    if function is builtins.print:
        return _printing
    if function is warnings.warn:
        return _warning
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name in LEVELS and function is vars(logging).get(name):  # a function of the module is one of the first logger
        owner = logging.getLogger()
    if isinstance(owner, logging.LoggerAdapter) and name in LEVELS:
        through = _speaker(getattr(owner.logger, name), constants)
        return through and functools.partial(_adapted, through, owner, told=name == "log")
    if loguru_calls.is_logger(owner) and name in loguru_calls.LEVELS:
        return functools.partial(_of_loguru, function)
    if not isinstance(owner, logging.Logger) or name not in LEVELS:
        return None
    if name == "exception":
        return _of_exception
    if name == "log":
        return functools.partial(_logging, owner)
    enabled = owner.isEnabledFor(LEVELS[name])
    constants.answers.append(Answer(owner.isEnabledFor, (LEVELS[name],), {}, enabled))
    return functools.partial(_logging, owner, LEVELS[name]) if enabled else None


# ---- what is called when the program runs


def _printing(*args: Any, file: Any = None, **kwargs: Any) -> Any:
    if file is None:
        return builtins.print, args, kwargs
    stream = next((name for name in _STREAMS if file is getattr(sys, name)), None)
    if stream is None:
        raise _UnsayableError("print to sys.stdout or sys.stderr")
    return functools.partial(_print_to, stream), args, kwargs


def _print_to(stream: str, *args: Any, **kwargs: Any) -> None:
    print(*args, file=getattr(sys, stream), **kwargs)


def _warning(message: Any, category: Any = None, stacklevel: Any = 1, source: Any = None) -> Any:
    if isinstance(message, Warning):
        plain = type(message).__init__ is Warning.__init__ and type(message).__str__ is Warning.__str__
        message, category = message.args[0] if plain and len(message.args) == 1 else message, type(message)
    if source is not None or not isinstance(stacklevel, int) or isinstance(message, Warning):
        raise _UnsayableError("warn with a text and a category: warnings.warn('text', UserWarning)")
    frame = _frame(stacklevel)
    place = ("sys", 1, "sys", {}) if frame is None else (*frame[:2], frame[3].get("__name__", "<string>"), frame[3])
    return functools.partial(_warn_at, *place), (message, category), {}


def _warn_at(file: str, line: int, module: str, namespace: dict[str, Any], message: Any, category: Any) -> None:
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category or UserWarning, file, line, module, registry)


def _adapted(
    through: Callable[..., Any], adapter: logging.LoggerAdapter[Any], *args: Any, told: bool, **options: Any
) -> Any:
    """A call of an adapter, as one of its logger; ``told`` is whether a level comes before the text."""
    level, (msg, *others) = args[:told], args[told:]
    msg, options = adapter.process(msg, options)  # type: ignore[assignment]
    return through(*level, msg, *others, **options)


def _of_exception(*_: Any, **__: Any) -> NoReturn:
    raise _UnsayableError("log the text of the exception: logger.error('failed: %s', error)")


def _of_loguru(method: Any, message: Any, /, *args: Any, **kwargs: Any) -> Any:
    logger = method.__self__
    if not loguru_calls.is_sayable(logger, _CONSTANTS):
        raise _UnsayableError("log texts, numbers and tensors, with a logger that is bound to constants")
    depths = range(1, loguru_calls.depth_of(logger) + 2)
    callers = [frame for depth in depths if (frame := _frame(depth)) is not None]
    return loguru_calls.said_from(method, callers), (message, *args), kwargs


def _logging(logger: logging.Logger, level: Any, msg: Any, /, *args: Any, **options: Any) -> Any:
    stacklevel, extra = options.pop("stacklevel", 1), options.pop("extra", None)
    if any(options.values()) or not isinstance(level, int) or not isinstance(stacklevel, int):
        raise _UnsayableError("log a text at a level that is a constant, without exc_info or stack_info")
    frame = _frame(stacklevel) or ("(unknown file)", 0, "(unknown function)")
    return functools.partial(_log_at, logger, level, *frame[:3]), (msg, *args), {"extra": extra}


def _log_at(
    logger: logging.Logger, level: int, file: str, line: int, function: str, /, msg: Any, *args: Any, extra: Any
) -> None:
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(logger.name, level, file, line, msg, args, None, function, extra))


def _frame(stacklevel: int) -> tuple[str, int, str, dict[str, Any]] | None:
    """The file, line, function and globals of the user's frame that is so many calls out, the innermost being 1."""
    frame = next((each for i, each in enumerate(frames_of_user(), 1) if i >= stacklevel), None)
    if frame is None:
        return None
    where = location_of(frame)
    return where.filename, where.line, frame.f_code.co_name, frame.f_globals
