"""The options of one target, each declared once: for the command line, and for ``[tool.dy2st]`` in pyproject.toml.

An option has the same name in both, with an underscore for a dash. ``kind`` is its type in settings, which msgspec
checks; ``line`` is how the command line takes it, as ``argparse.add_argument`` has it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# Of a search that isn't told how long it may take.
SECONDS = 10


@dataclass(frozen=True)
class Option:
    """An option of a target.

    ``words`` are what values of its ``kind`` are called, and ``used`` makes of one what the command line gives.
    ``shared`` ones may be set for all targets, others for one. Without a ``kind`` it stands on the command line alone.
    ``fits`` says of a value of its kind whether it is one that settings may have.
    """

    name: str
    line: Mapping[str, Any]
    kind: Any = None
    words: str = ""
    default: Any = None
    shared: bool = True
    used: Callable[[Any], Any] = field(default=lambda value: value)
    fits: Callable[[Any], bool] = field(default=lambda _: True)


def _text_list(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value])]


def _wholes(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _runners(name: str, told: str) -> Option:
    line = {"type": _comma_list(name), "default": (), "metavar": "NAME,NAME", "help": told}
    return Option(name, line, str | list[str], "a text or a list of texts", (), used=_text_list)


def _seconds(value: Any) -> float | None:
    """How long a search takes; None for no search."""
    return (SECONDS if value else None) if isinstance(value, bool) else value


def _is_time(value: Any) -> bool:
    return isinstance(value, bool) or 0 < value < math.inf


def _is_tolerance(value: Any) -> bool:
    return all(0 <= each < math.inf for each in (value.values() if isinstance(value, dict) else [value]))


def _bound(text: str) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    if equals and not name:
        raise argparse.ArgumentTypeError(f"{text!r} names no output")
    try:
        return name, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid float value: {number!r}") from None


def _comma_list(what: str, of: Callable[[str], Any] = str) -> Callable[[str], tuple[Any, ...]]:
    """What a list on the command line means: ``17,18``."""

    def read(text: str) -> tuple[Any, ...]:
        try:
            return tuple(of(each) for each in text.split(","))
        except ValueError:
            raise argparse.ArgumentTypeError(f"invalid {what}: {text!r}") from None

    return read


def _input_as(text: str) -> tuple[str, str]:
    name, equals, kind = text.partition("=")
    if not (name and equals and kind):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=tensor")
    return name, kind


def _tolerance(name: str, what: str) -> Option:
    told = f"{what} tolerance for floats, or for one output ('output[1]=1e-3', or the file's name); repeatable"
    line = {"action": "append", "type": _bound, "metavar": "[OUTPUT=]X", "help": told}
    words = "a number from 0 up, or a table of such numbers by output"
    return Option(name, line, float | dict[str, float], words, fits=_is_tolerance)


def _flag(name: str, told: str) -> Option:
    return Option(name, {"action": "store_true", "help": told}, bool, "true or false", default=False)


_REPEATED: dict[str, Any] = {"action": "append", "default": []}

# In the order in which --help has them: those of ``convert`` and ``check``, then those of ``check`` alone.
OF_FILES = (
    Option(
        "input",
        _REPEATED
        | {
            "metavar": "SPEC",
            "help": "make inputs from a spec, for instance 'x=f32[batch,3,224,224]' (a name is a dynamic dimension), "
            "or give a Python value: k=5; repeat it for each argument",
        },
        str | list[str],
        "a text or a list of texts",
        [],
        shared=False,
        used=_text_list,
    ),
    Option(
        "inputs",
        {
            "metavar": "FILE",
            "help": "inputs from a .npz, .pt or .safetensors file, a folder of these, or file.py:function "
            "(default: example_inputs in the target's module)",
        },
        str,
        "a file's or folder's name",
        shared=False,
    ),
    _flag("all_errors", "list everything that is refused, not only the first"),
    Option(
        "allow_specialize",
        _REPEATED
        | {
            "metavar": "LINE",
            "help": "a line (N of the target's file, or FILE:N) at which a dynamic size may be fixed; repeatable",
        },
        str | int | list[str | int],
        "a list of lines",
        [],
        shared=False,
        used=_text_list,
    ),
    _flag(
        "drop_guards",
        "leave out the tests at which eager may raise: the file then computes something where eager raises",
    ),
    Option(
        "state",
        {
            "choices": ("io", "forget", "refuse"),
            "help": "what becomes of what the model changes in a call and reads in the next: inputs and outputs of the "
            "file (io, the default), nothing (forget: the file starts afresh in each call), or an error (refuse)",
        },
        Literal["io", "forget", "refuse"],
        "io, forget or refuse",
    ),
    Option(
        "optional_outputs",
        {
            "choices": ("optional", "flag"),
            "help": "how a result that is None on some paths is written: as ONNX's optional (the default), or as a "
            "tensor with a bool beside it (flag: NAME and NAME_present)",
        },
        Literal["optional", "flag"],
        "optional or flag",
    ),
    Option(
        "inputs_as",
        _REPEATED
        | {
            "type": _input_as,
            "metavar": "NAME=tensor",
            "help": "an argument whose Python numbers are inputs of the file, and no constants; repeatable",
        },
        dict[str, str],
        "a table of texts by argument",
        [],
    ),
    _flag(
        "random_inputs",
        "what the model draws at random are inputs of the file (random_0, random_1), on which both are compared",
    ),
    Option("opset", {"type": int, "metavar": "N", "help": "ONNX opset version"}, int, "a whole number"),
    _tolerance("rtol", "relative"),
    _tolerance("atol", "absolute"),
)

# Of both, too, and last of these.
OF_SEARCHES = (
    Option(
        "search",
        {
            "type": float,
            "metavar": "SECONDS",
            "help": "look for inputs that take the paths which none takes; stops after 100 runs for each second, "
            f"or when the time is up (--search alone: {SECONDS} seconds)",
        },
        bool | int | float,
        "a number of seconds above 0, true or false",
        used=_seconds,
        fits=_is_time,
    ),
    Option(
        "seed",
        {"type": int, "metavar": "N", "help": "of the search (default: 0)"},
        int,
        "a whole number",
        0,
    ),
    Option(
        "save_inputs",
        {"metavar": "DIR", "help": "save what the search finds, for --inputs DIR"},
        str,
        "a folder's name",
        shared=False,
    ),
)

OF_CHECKS = (
    Option(
        "onnx",
        {"metavar": "FILE", "help": "compare this file, in place of one that is exported now"},
        str,
        "a file's name",
        shared=False,
    ),
    _flag(
        "allow_uncovered",
        "pass even if no input takes some arm, or some number of trips, or gives an output a value",
    ),
    _flag("optimization_levels", "also compare each of onnxruntime's levels of optimisation"),
    Option(
        "opsets",
        {
            "type": _comma_list("opsets", int),
            "default": (),
            "metavar": "N,N",
            "help": "also write and compare files of these opsets",
        },
        int | list[int],
        "a list of whole numbers",
        (),
        used=_wholes,
    ),
    _runners("providers", "also compare on these execution providers of onnxruntime, for instance CUDA"),
    _runners("runtimes", "also compare on these other runtimes: reference (onnx's own), openvino"),
    Option(
        "timeout",
        {"type": float, "metavar": "SECONDS", "help": "stop a target that takes longer, and go on"},
        float,
        "a number of seconds above 0",
        fits=_is_time,
    ),
)

OPTIONS = {each.name: each for each in (*OF_FILES, *OF_SEARCHES, *OF_CHECKS)}
# Where nobody says anything; ``traceback`` is an option of all commands.
DEFAULTS: dict[str, Any] = {each.name: each.default for each in OPTIONS.values()} | {"traceback": False}


def add_options(parser: argparse.ArgumentParser, *options: Option) -> None:
    """Let a command take these options."""
    for each in options:
        parser.add_argument(f"--{each.name.replace('_', '-')}", **each.line)


def with_default_seconds(arguments: Sequence[str]) -> list[str]:
    """``--search`` without seconds takes no target for them: what follows it is seconds if it is a number."""
    found: list[str] = []
    for each in arguments:
        if found[-1:] == ["--search"]:
            found[-1] = "--search" if _is_number(each) else f"--search={SECONDS}"
        found.append(each)
    return [*found[:-1], f"--search={SECONDS}"] if found[-1:] == ["--search"] else found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
