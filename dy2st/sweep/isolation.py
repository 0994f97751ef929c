"""One target after the other in a process: what one has changed is put back before the next.

Modules of the user's are imported anew by each target, so that those of the same name in different folders don't meet;
those of installed packages stay. What can't be put back is what a module changes in such a package.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.source.user_frames import is_own

if TYPE_CHECKING:
    from types import ModuleType


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Put back on leaving: modules, the paths of imports, the environment, the working folder, torch's settings."""
    modules, paths, environment, folder = set(sys.modules), list(sys.path), dict(os.environ), Path.cwd()
    shown = list(warnings.filters)
    torch_settings = _torch_settings()
    random_state = random.getstate()
    try:
        yield
    finally:
        sys.path[:] = paths
        warnings.filters[:] = shown  # type: ignore[index]  # a list, whatever typeshed says
        os.chdir(folder)
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        random.setstate(random_state)
        for name in set(sys.modules) - modules:
            if is_users_module(sys.modules[name]):
                del sys.modules[name]
        importlib.invalidate_caches()
        _set_torch(torch_settings)
        gc.collect()


def is_users_module(module: ModuleType | None) -> bool:
    """Whether a module is the user's own: neither Python's, nor an installed package's, nor ours."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return is_own(file)
    inside = getattr(module, "__path__", None)  # a package without __init__.py
    return inside is not None and any(is_own(str(each)) for each in inside)


def _torch_settings() -> dict[str, object]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    return {name: getattr(torch, name)() for name in _TORCH}


# What gets each, and what sets it.
_TORCH = {
    "get_default_dtype": "set_default_dtype",
    "get_default_device": "set_default_device",
    "get_num_threads": "set_num_threads",
    "is_grad_enabled": "set_grad_enabled",
    "get_rng_state": "set_rng_state",
}


def _set_torch(before: dict[str, object]) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not before:
        return
    now = _torch_settings()
    for name, value in before.items():
        if name == "get_rng_state" or now[name] != value:
            # a default device that was never set is none, not the CPU
            getattr(torch, _TORCH[name])(None if name == "get_default_device" else value)
