"""Which Python functions are converted where they are called."""

from __future__ import annotations

import sysconfig
import types
from collections.abc import Callable
from typing import Any

from dy2st.calls.decorated import is_library_wrapper
from dy2st.conversion import is_left_alone
from dy2st.errors import SourceError
from dy2st.source import is_rewritten, rewrite

# Of torch itself only what runs the user's modules, or has tensor conditions of its own, is followed.
FOLLOWED_TORCH = frozenset({"torch.nn.modules.container", "torch.nn.modules.adaptive"})
# Of the standard library the containers that users derive theirs from. (What these inherit, much other code uses too.)
FOLLOWED_CONTAINERS = frozenset("UserDict UserList ChainMap".split())
STDLIB = tuple(sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib"))
OWN_PACKAGES = ("dy2st", "torch", "numpy", "onnx", "onnxruntime", "onnxscript", "sympy", "_pytest", "pytest")


def should_follow(function: types.FunctionType) -> bool:
    """Whether a function is the user's (or a package's) own code, and not opted out."""
    if is_left_alone(function) or is_rewritten(function):
        return False
    module = function.__module__ or ""
    if module in FOLLOWED_TORCH:
        return True
    if module.split(".")[0] in OWN_PACKAGES:
        return False
    if is_library_wrapper(function):
        return True
    if module == "collections":
        return function.__qualname__.partition(".")[0] in FOLLOWED_CONTAINERS
    filename = function.__code__.co_filename
    return not filename.startswith(STDLIB) or "site-packages" in filename


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
