"""``save``: the programs of static functions, and the tensors that they read, in a file that needs no code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import dy2st
from dy2st.errors import UsageError
from dy2st.static.function import StaticFunction
from dy2st.static.loading import Loaded, may_be_called
from dy2st.static.saved_tensors import Held
from dy2st.static.saving import Examples, method_to_json, saveable
from dy2st.static.weights_file import write
from dy2st.static_function import to_static
from dy2st.values.describing import describe


def save(
    fn_or_module: Any,
    path: str | os.PathLike[str],
    examples: Examples | Mapping[str, Examples] | None = None,
) -> None:
    """Save the programs of a static function, module or methods, to be run without their source: see ``dy2st.load``.

    Saved are the programs for ``examples``; without any, those that were captured so far and hold now, else one that is
    captured for examples made from ``input_spec``. A program holds now if what its code reads beside its arguments is
    what it was when it was captured: one of train mode does not, once the module is in eval mode.

    The file is in the format of safetensors: weights under their names, and the programs as JSON in its metadata. It
    is written whole or not at all. It says which version of the format it has: a dy2st reads all versions up to its
    own, and refuses newer ones.

    Args:
        fn_or_module: what ``dy2st.to_static`` takes or gives: a function, a method, a module; or a dict of several, by
            the names under which they will be called (``{"forward": net, "decode": net.decode}``).
        path: the file to write. Its folder exists; a file that is there is replaced.
        examples: sets of example arguments, each a tuple, or a dict of keyword arguments. Of several functions a dict
            of such, by name. They are captured, and not run.

    Raises:
        UnsavableError: a program has what a file can't hold: custom autograd functions, operators of other libraries,
            objects among its constants, arguments or results, hooks of the module itself.
        SavedFileError: the file can't be written.
        UsageError: there is nothing to save, or an example is no set of arguments.
        Dy2stError: an example can't be captured.
    """
    if isinstance(fn_or_module, Loaded):
        if examples is not None:
            raise UsageError("what was loaded has its programs: it is saved without examples")
        write(Path(path), *fn_or_module.content())
        return
    several = isinstance(fn_or_module, Mapping)
    functions = {name: _static(each) for name, each in fn_or_module.items()} if several else {}
    if not several:
        function = _static(fn_or_module)
        functions = {function.__name__ if may_be_called(function.__name__) else "forward": function}
    if not functions:
        raise UsageError("there is nothing to save: no function is given")
    given: Any = examples if several else {next(iter(functions)): examples}
    if several and examples is not None and not (isinstance(given, Mapping) and given.keys() <= functions.keys()):
        raise UsageError(f"examples for several functions are a dict by their names: {', '.join(functions)}")
    held = Held()
    methods = {}
    for name, function in functions.items():
        if not may_be_called(name):
            raise UsageError(f"{name!r} can't be the name of a saved function", hint="choose another one")
        methods[name] = method_to_json(function, (given or {}).get(name), held)
    whole = {"saved_by": dy2st.__version__, "methods": methods, **held.to_json()}
    write(Path(path), json.dumps(whole, separators=(",", ":"), allow_nan=False), held.tensors)


def _static(thing: Any) -> StaticFunction:
    """The static function of what ``to_static`` takes or gives."""
    found = to_static(thing)
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        raise UsageError(f"{found.__name__} is a class: save a module of it")
    if isinstance(found, torch.nn.Module) and isinstance(found.forward, StaticFunction):
        found = found.forward
    if not isinstance(found, StaticFunction):
        raise UsageError(f"save takes functions, methods and modules, not {describe(thing)}")
    return saveable(found)
