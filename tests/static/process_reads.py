"""Changes to what code reads by other names than its own, and to what the process says of itself."""

from __future__ import annotations

import importlib
import logging
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.static.world import Change, Settings, put, set_to

COMPUTED = 2
LOGGER = logging.getLogger("dy2st.tests.process")
BY_NAME = operator.attrgetter("shelf.scale")
ASKING = getattr
NAME = "scale"
SHELF = types.SimpleNamespace(shelf=types.SimpleNamespace(scale=2))
IMPORTED: Any = types.ModuleType("dy2st_test_imported")
IMPORTED.scale = 2
ANSWERS = {"scale": 2}


def _answer(name: str) -> Any:
    if name in ANSWERS:
        return ANSWERS[name]
    raise AttributeError(name)


ANSWERING: Any = types.ModuleType("dy2st_test_answering")
ANSWERING.__getattr__ = _answer
sys.modules |= {each.__name__: each for each in (IMPORTED, ANSWERING)}


def imports(x: Tensor) -> Tensor:
    import dy2st_test_imported

    return x * dy2st_test_imported.scale


def imports_from(x: Tensor) -> Tensor:
    from dy2st_test_imported import scale

    return x * scale


def imports_by_text(x: Tensor) -> Tensor:
    return x * importlib.import_module("dy2st_test_imported").scale


def counts_names(x: Tensor) -> Tensor:
    return x * len([name for name in dir(SHELF) if not name.startswith("_")])


def logs(x: Tensor) -> Tensor:
    return -x if LOGGER.isEnabledFor(logging.DEBUG) else x


def process_reads() -> dict[str, Change]:
    """Functions, and what is changed of what they read."""
    scale, back = set_to(IMPORTED, "scale", 5), set_to(IMPORTED, "scale", 2)
    limit, threads = sys.getrecursionlimit(), torch.get_num_threads()
    handles: list[Any] = []

    def double(_: nn.Module, __: Any, result: Tensor) -> Tensor:
        return result * 2 if result.sum() > 0 else result - 1

    def flag(value: bool) -> Callable[[], None]:
        return set_to(torch.backends.cudnn, "enabled", value)

    def hook() -> None:
        handles.append(nn.modules.module.register_module_forward_hook(double))

    return {
        "a module that is imported inside": Change(imports, scale, back),
        "a name that is imported inside": Change(imports_from, scale, back),
        "a module that is imported by a text": Change(imports_by_text, scale, back),
        "another module of the name": Change(
            imports, put(sys.modules, IMPORTED.__name__, SHELF.shelf), put(sys.modules, IMPORTED.__name__, IMPORTED)
        ),
        "a module's __getattr__": Change(
            lambda x: x * ANSWERING.scale, put(ANSWERS, "scale", 5), put(ANSWERS, "scale", 2)
        ),
        "globals()": Change(
            lambda x: x * globals()["COMPUTED"], put(globals(), "COMPUTED", 5), put(globals(), "COMPUTED", 2)
        ),
        "dir()": Change(counts_names, set_to(SHELF, "more", 1), lambda: delattr(SHELF, "more")),
        "attrgetter": Change(
            lambda x: x * BY_NAME(SHELF), set_to(SHELF.shelf, "scale", 5), set_to(SHELF.shelf, "scale", 2)
        ),
        "getattr by another name": Change(
            lambda x: x * ASKING(Settings, NAME),
            set_to(Settings, "scale", 5),
            set_to(Settings, "scale", 2),
        ),
        "threads of torch": Change(
            lambda x: x * torch.get_num_threads(),
            lambda: torch.set_num_threads(threads + 1),
            lambda: torch.set_num_threads(threads),
        ),
        "the seed": Change(
            lambda x: x * (torch.initial_seed() % 7),
            lambda: torch.manual_seed(5),
            lambda: torch.manual_seed(0),
        ),
        "the limit of recursion": Change(
            lambda x: x * sys.getrecursionlimit(),
            lambda: sys.setrecursionlimit(limit + 100),
            lambda: sys.setrecursionlimit(limit),
        ),
        "a logger's level": Change(
            logs, lambda: LOGGER.setLevel(logging.DEBUG), lambda: LOGGER.setLevel(logging.NOTSET)
        ),
        "a flag of a backend that torch.export switches off": Change(
            lambda x: x * (2 if torch.backends.cudnn.enabled else 3), flag(False), flag(True)
        ),
        "a function of Python's": Change(
            lambda x: x * math.sqrt(4.0), set_to(math, "sqrt", lambda _: 9.0), set_to(math, "sqrt", math.sqrt)
        ),
        "one that torch.export replaces": Change(
            lambda x: x * math.pow(2.0, 3.0), set_to(math, "pow", lambda _, y: y), set_to(math, "pow", math.pow)
        ),
        "a method that tensors get": Change(
            lambda x: x.doubled() if hasattr(x, "doubled") else x - 1,
            set_to(Tensor, "doubled", lambda self: self * 2),
            lambda: delattr(Tensor, "doubled"),
        ),
        "a method of torch's tensors": Change(
            lambda x: x.norm(), set_to(Tensor, "norm", lambda self: self.sum()), set_to(Tensor, "norm", Tensor.norm)
        ),
        "a member that a class gets": Change(
            lambda x: x * (2 if hasattr(Settings, "later") else 3),
            set_to(Settings, "later", 1),
            lambda: delattr(Settings, "later"),
        ),
        "hooks of all modules": Change(nn.Linear(3, 3), hook, lambda: handles.pop().remove()),
        "hooks of all modules around a function": Change(lambda x: x * 2, hook, lambda: handles.pop().remove()),
    }
