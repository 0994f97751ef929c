"""Programs that hand a data-dependent value to a function, and what is to be said of their export."""

from __future__ import annotations

import collections
import contextlib
import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

import dy2st
from dy2st.errors import Dy2stError

INPUTS = [torch.tensor(values) for values in ([1.5, 2.5], [-3.0, 1.0], [0.0, 0.0], [2.0, 0.0], [2.0, -1.0])]
# What a graph does where eager raises for a number's value: it goes on with infinity or NaN.
GOES_ON = (ValueError, ZeroDivisionError, OverflowError)
ITERATORS = (range, enumerate, zip, reversed, types.GeneratorType)


# ---- values


def a_float(x: Tensor) -> Any:
    return x.sum().item()


def an_int(x: Tensor) -> Any:
    return (x > 0).sum().item()


def a_bool(x: Tensor) -> Any:
    return (x.sum() > 1).item()


def a_grown_list(x: Tensor) -> Any:
    found = []
    for value in x:
        if value > 0:
            found.append(value.item() * 2)  # noqa: PERF401  a loop is what is tested
    return found


def a_list(x: Tensor) -> Any:
    return x.tolist()


def a_tensor(x: Tensor) -> Any:
    return x * 2


def a_tuple(x: Tensor) -> Any:
    return 1, x.sum().item()


def a_dict(x: Tensor) -> Any:
    return {"a": x.sum().item()}


def a_size(x: Tensor) -> Any:
    return x[x > 0].shape[0]


def an_optional(x: Tensor) -> Any:
    found = None
    if x.sum() > 1:
        found = x.sum().item()
    return found


def a_text(x: Tensor) -> Any:
    return f"{x.sum().item()}"


VALUES = (
    a_float,
    an_int,
    a_bool,
    a_grown_list,
    a_list,
    a_tensor,
    a_tuple,
    a_dict,
    a_size,
    an_optional,
    a_text,
)

# ---- calls

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "f(v)": lambda f, v: f(v),
    "f(v, 2)": lambda f, v: f(v, 2),
    "f(2, v)": lambda f, v: f(2, v),
    "f(v, v)": lambda f, v: f(v, v),
    "f('a', v)": lambda f, v: f("a", v),
    "f([1.0, 2.0], v)": lambda f, v: f([1.0, 2.0], v),
    "f(v, [1.0, 2.0])": lambda f, v: f(v, [1.0, 2.0]),
    "f([v, 1.5])": lambda f, v: f([v, 1.5]),
    "f(abs, v)": lambda f, v: f(abs, v),
    "f(abs, [v, 1])": lambda f, v: f(abs, [v, 1]),
    "f(v, 1, 2)": lambda f, v: f(v, 1, 2),
    "f(1, v, 2)": lambda f, v: f(1, v, 2),
    "f(1, 2, v)": lambda f, v: f(1, 2, v),
    "f([v, 1.5], [2.0, v])": lambda f, v: f([v, 1.5], [2.0, v]),
}


def number_of(answer: Any, depth: int = 0) -> Any:
    """A number that tells apart what a function may answer: its class and its value."""
    if answer is None:
        return 1
    if isinstance(answer, bool):
        return 3 if answer else 5
    if isinstance(answer, (int, float)):
        return answer * 2 + (7 if isinstance(answer, float) else 11)
    if isinstance(answer, str):
        return len(answer) + 13
    if isinstance(answer, torch.Tensor):
        return answer.to(torch.float64).sum() + 17
    if depth > 3:
        return 19
    if isinstance(answer, dict):
        total = 23
        for key, value in answer.items():
            total = total + number_of(key, depth + 1) + 2 * number_of(value, depth + 1)
        return total
    if isinstance(answer, (list, tuple, collections.deque)):
        total = 29
        for place, value in enumerate(answer):
            total = total + (place + 1) * number_of(value, depth + 1)
        return total + len(answer)
    if isinstance(answer, ITERATORS) or hasattr(answer, "__next__"):
        return number_of([value for _, value in zip(range(4), answer)], depth + 1)  # noqa: B905
    if isinstance(answer, np.ndarray):
        return number_of(answer.dtype.kind) + number_of(answer.tolist(), depth + 1)
    return sum(map(ord, type(answer).__name__))


def program(function: Any, value: Callable[[Tensor], Any], call: Callable[[Any, Any], Any]) -> Callable[[Tensor], Any]:
    """A model whose result depends on what ``function`` answers."""

    def model(x: Tensor) -> Any:
        return x.sum() * 0 + number_of(call(function, value(x)))

    return model


# ---- verdicts


def outcome(model: Callable[[Tensor], Any], x: Tensor) -> Any:
    """The result, or the exception."""
    try:
        with np.errstate(all="ignore"):  # what numpy warns of is NaN or infinite, in the graph too
            return float(model(x.clone()))
    except Exception as error:  # noqa: BLE001  whatever a function raises
        return error


def alike(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=1e-6, atol=0, equal_nan=True))


def verdict(model: Callable[[Tensor], Any], *, may_go_on: bool) -> str | None:
    """``equal``, ``refused CODE``, or what is wrong; None for a program that eager refuses, or that draws lots."""
    eager = [outcome(model, x) for x in INPUTS]
    # What is made next lies elsewhere: where an object lies is as much by lot.
    elsewhere = [([], [n], {}, {n}) for n in range(1000)]
    again = [outcome(model, x) for x in INPUTS]
    del elsewhere
    if isinstance(eager[0], Exception):
        return None
    if any(
        isinstance(a, float) and not (isinstance(b, float) and alike(a, b)) for a, b in zip(eager, again, strict=True)
    ):
        return None
    try:
        exported = dy2st.export(model, (INPUTS[0],)).module()
    except Dy2stError as error:
        return f"refused {error.code}"
    except Exception as error:  # noqa: BLE001  the verdict is about it
        return f"not coded: {type(error).__name__}: {error}"
    wrong = []
    for x, expected in zip(INPUTS, eager, strict=True):
        got = outcome(exported, x)
        if isinstance(expected, Exception):
            goes_on = may_go_on and isinstance(expected, GOES_ON)
            wrong += [] if goes_on or isinstance(got, Exception) else [f"{got} where eager raises {expected!r}"]
        elif isinstance(got, Exception) or not alike(got, expected):
            wrong.append(f"{got!r} in place of {expected}")
    return "; ".join(wrong) or "equal"


def functions(module: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module."""
    found = importlib.import_module(module)
    for name in sorted(dir(found)):
        if not name.startswith("_") and name not in LEFT_OUT and callable(getattr(found, name)):
            yield name, getattr(found, name)


# What ends or stops the process, reads or writes files, shows texts, or asks for the frame that calls it.
LEFT_OUT = frozenset(
    "breakpoint compile copyright credits currentframe dir eval exec exit fromfile genfromtxt get_include getstate "
    "globals help info input license load loadtxt locals memmap open print quit save savetxt savez savez_compressed "
    "seed setstate show_config show_runtime stack test trace vars".split()
)


def sweep(module: str) -> Iterator[tuple[str, str]]:
    """Each call of each function of a module on each of the values that eager carries out, with its verdict."""
    may_go_on = module in ("builtins", "math", "operator")
    for name, function in functions(module):
        for value in VALUES:
            calls = iter(CALLS.items())
            told = 0
            for shape, call in calls:
                with contextlib.redirect_stdout(None):
                    found = verdict(program(function, value, call), may_go_on=may_go_on)
                if found is not None:
                    yield f"{module}.{name}: {shape} of {value.__name__}", found
                    told += 1
                if told == 2:
                    break
