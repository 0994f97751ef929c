"""What a module's hooks return, in the form that ``nn.Module.__call__`` goes on with.

These functions are rewritten like the user's: a hook may return None on one path, and a value on another.
"""

from __future__ import annotations

from typing import Any


def arguments_after(hook: Any, module: Any, args: Any) -> Any:
    """The arguments after a forward pre-hook."""
    result = hook(module, args)
    if result is None:
        return args
    if isinstance(result, tuple):
        return result
    return (result,)


def all_arguments_after(hook: Any, module: Any, args: Any, kwargs: Any) -> Any:
    """The positional and keyword arguments after a forward pre-hook that takes both."""
    result = hook(module, args, kwargs)
    if result is None:
        return args, kwargs
    return result


def output_after(hook: Any, module: Any, *given: Any) -> Any:
    """A module's output after a forward hook; ``given`` ends with the output before it."""
    result = hook(module, *given)
    if result is None:
        return given[-1]
    return result
