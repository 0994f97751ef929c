"""Which code is the user's: the Python functions that are converted where they are called, and special methods.

Python demands of some special methods that they return one of its own types, which a staged number is not: ``special``
finds them, for the operators to call. Source: Python reference 3.3.1.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

from dy2st.conversion import is_left_alone
from dy2st.errors import SourceError
from dy2st.source.rewriting import is_rewritten, rewrite
from dy2st.source.user_frames import is_part_of_torch, is_pythons, module_of
from dy2st.staging.session import MODE

# Of torch itself only what runs the user's modules, or has tensor conditions of its own, is followed.
FOLLOWED_TORCH = frozenset({"torch.nn.modules.container", "torch.nn.modules.adaptive", "torch.nn.utils.rnn"})
# Of the standard library the containers that users derive theirs from. (What these inherit, much other code uses too.)
FOLLOWED_CONTAINERS = frozenset("UserDict UserList ChainMap".split())
DECORATING = (contextlib.__file__, functools.__file__)
# Of dy2st itself what is written as a user would.
FOLLOWED_OWN = frozenset(
    f"dy2st.staging.containers.{name}"
    for name in "data_keys dict_views data_lists list_functions sorted_functions object_tables enum_members".split()
)
OWN_PACKAGES = ("dy2st", "torch", "numpy", "onnx", "onnxruntime", "onnxscript", "sympy", "_pytest", "pytest")


def is_library_wrapper(function: types.FunctionType) -> bool:
    """Whether a function is what ``functools`` or ``contextlib`` put around one of the user's."""
    if function.__code__.co_filename not in DECORATING:
        return False
    ordering = "_from_" in function.__code__.co_name  # total_ordering's
    return ordering or hasattr(function, "__wrapped__") or "partialmethod" in " ".join(vars(function))


def should_follow(function: types.FunctionType) -> bool:
    """Whether a function is the user's (or a package's) own code, and not opted out."""
    if is_left_alone(function) or is_rewritten(function):
        return False
    module = module_of(function)
    if module in FOLLOWED_TORCH or module in FOLLOWED_OWN or is_part_of_torch(module):
        return True
    if module.split(".")[0] in OWN_PACKAGES:
        return False
    if is_library_wrapper(function):
        return True
    if module == "collections":
        return function.__qualname__.partition(".")[0] in FOLLOWED_CONTAINERS
    return not is_pythons(function.__code__.co_filename)


def of_the_user(function: Any) -> bool:
    """Whether this is Python code that is converted, or has been."""
    return isinstance(function, types.FunctionType) and (is_rewritten(function) or should_follow(function))


def python_function(function: types.FunctionType) -> Callable[..., Any]:
    """The converted function, or itself."""
    if not should_follow(function):
        return function
    try:
        return rewrite(function)
    except SourceError:
        # Without source it runs as it is: a tensor condition in it is refused by torch.
        return function


def member(owner: Any, name: str, default: Any = None) -> Any:
    """What the class of an object has under a name, as it stands there."""
    return next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), default)


def special(owner: Any, name: str) -> Callable[..., Any] | None:
    """A special method that the user has written for an object, converted; None without."""
    if MODE.capture is None or type(owner).__module__ == "builtins" or is_left_alone(owner):
        return None
    method = member(owner, name)
    return MODE.capture.call(types.MethodType(method, owner)) if of_the_user(method) else None
