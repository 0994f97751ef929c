"""What a function leads to: the globals that its code names, its closure, its defaults, what it imports."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dy2st.guards.code_reads import CodeReads, code_reads
from dy2st.guards.names import TOLD, Names, is_users_code, is_users_module
from dy2st.guards.source import Same, Source
from dy2st.source.rewriting import is_rewritten, original
from dy2st.staging.memory.heap import is_filled

# Which modules have been imported.
LOADED = ("content", "loaded")


def described_function(names: Names, function: types.FunctionType) -> tuple[Any, Iterable[Source]]:
    """What is fixed of a function, and its parts."""
    if is_rewritten(function):
        function = original(function)
    code = function.__code__
    if not names.has_run(code):
        return ("function", Same(function), code), ()
    names.add(code)
    if not is_users_code(code):
        parts = [*_wrapped_by(function), *(_of_torch(function) if names.of_torchs_modules(code) else ())]
        return ("function", Same(function), code), parts
    return ("function", code, *_absent(function)), _held_by(names, function)


def _absent(function: types.FunctionType) -> Iterator[str]:
    known = function.__globals__
    return (name for name in sorted(code_reads(function.__code__).globals) if name not in known)


def _held_by(names: Names, function: types.FunctionType) -> Iterator[Source]:
    known = function.__globals__
    reads = CodeReads() if names.frozen is True else code_reads(function.__code__)
    named = dict(reads.globals)
    for name in known if reads.any_global else ():
        if not name.startswith("__"):
            named.setdefault(name, {()})
    yield from _imported(names, function, reads)
    for name, chains in sorted(named.items()):
        if names.is_frozen(name):
            continue
        if name not in known:
            if hasattr(builtins, name):
                yield Source(("builtin", name), getattr(builtins, name), f": {name}", opaque=True)
            continue
        value = known[name]
        if isinstance(value, types.ModuleType) and not is_users_module(value):
            # Without a chain it goes elsewhere, and what is asked of it there is named there.
            yield Source(("global", known, name), value, f": {name}", opaque=() not in chains)
            for chain in sorted(chains):
                yield from _along(value, known, name, chain)
        elif isinstance(value, types.ModuleType) and () not in chains:
            yield Source(("global", known, name), value, f": {name}", opaque=True)
            for chain in sorted(chains):
                yield from _along_users(value, known, name, chain)
        else:
            yield Source(("global", known, name), value, f": {name}")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if names.frozen is not True and not names.is_frozen(name):
            yield Source(("cell", cell), cell, f": {name}")
    yield Source(("get", "__defaults__"), function.__defaults__, ".__defaults__")
    yield Source(("get", "__kwdefaults__"), function.__kwdefaults__, ".__kwdefaults__")
    for name in sorted(TOLD & names.told):
        yield Source(("get", name), getattr(function, name), f".{name}")
    yield from own_attributes(names, vars(function))


def _imported(names: Names, function: types.FunctionType, reads: CodeReads) -> Iterator[Source]:
    """The modules that a function's code imports by itself, each behind those that it lies in.

    One that is not there has not been imported on any path that was taken.
    """
    package = function.__globals__.get("__package__") or ""
    for level, name, wanted in sorted(reads.imports, key=str):
        with contextlib.suppress(ImportError):
            whole = importlib.util.resolve_name("." * level + name, package) if level else name
            parts = whole.split(".")
            for i in range(len(parts)):
                found = ".".join(parts[: i + 1])
                module = sys.modules.get(found)
                if module is not None and not names.is_frozen(found):
                    yield Source(("global", sys.modules, found), module, f": {found}", opaque=wanted is not None)
            module = sys.modules.get(whole)
            if module is None or names.is_frozen(whole):
                continue
            for each in wanted or ():
                yield from _imported_from(names, module, whole, each)


def _imported_from(names: Names, module: types.ModuleType, whole: str, name: str) -> Iterator[Source]:
    """What ``from whole import name`` gives."""
    if name == "*" or names.is_frozen(name):
        yield Source(("global", sys.modules, whole), module, f": {whole}")
    elif isinstance(vars(module).get(name), types.ModuleType):
        inner = vars(module)[name].__name__
        if inner in sys.modules:
            yield Source(("global", sys.modules, inner), vars(module)[name], f": {inner}")
    else:
        yield from _along_users(module, sys.modules, whole, (name,))


def _of_torch(function: types.FunctionType) -> Iterator[Source]:
    """The functions of torch's modules that a module's forward calls: somebody may put another one in their place."""
    for name, chains in sorted(code_reads(function.__code__).globals.items()):
        value = function.__globals__.get(name)
        for chain in sorted(chains) if isinstance(value, types.ModuleType) else ():
            yield from _along(value, function.__globals__, name, chain)


def _wrapped_by(function: types.FunctionType) -> Iterator[Source]:
    """The functions that one of a library's stands around: those of ``contextmanager``, ``no_grad`` and the like."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        held: Any = cell.cell_contents if is_filled(cell) else None
        several = held.values() if type(held) in (dict, types.MappingProxyType) else (held,)
        if any(isinstance(each, (types.FunctionType, types.MethodType, functools.partial)) for each in several):
            yield Source(("cell", cell), cell, f": {name}")


def own_attributes(names: Names, held: Mapping[str, Any]) -> Iterator[Source]:
    """The attributes in a namespace that can be read."""
    for name, value in held.items():
        if names.has(name):
            yield Source(("attribute", name), value, f".{name}")


def _along_users(
    module: types.ModuleType, known: dict[str, Any], name: str, chain: tuple[str, ...]
) -> Iterator[Source]:
    """What a chain of attributes of a user's module ends in; what a module lacks, it may make (PEP 562)."""
    value: Any = module
    for i, attribute in enumerate(chain):
        held = vars(value)
        asked = attribute if attribute in held else "__getattr__"
        if asked not in held:
            return
        value = held[asked]
        if not isinstance(value, types.ModuleType) or i == len(chain) - 1:
            whole = (*chain[:i], asked)
            yield Source(("chain", known, name, whole), value, f": {name}.{'.'.join(whole)}")
            return


def _along(module: Any, known: dict[str, Any], name: str, chain: tuple[str, ...]) -> Iterator[Source]:
    """What a chain of attributes of a library's module ends in."""
    value: Any = module
    for i, attribute in enumerate(chain):
        try:
            value = getattr(value, attribute)
        except Exception:  # noqa: BLE001  whatever the code that runs will meet
            return
        if not isinstance(value, types.ModuleType):
            whole = chain[: i + 1]
            if value is sys.modules and chain[i + 1 :] == ("__contains__",):
                # Which modules there are, not what they hold: that would be everything.
                yield Source(LOADED, " ".join(sys.modules), ": the names in sys.modules")
                return
            if value is os.getenv:
                yield Source(("content", "environment"), os.environ, ": os.environ")
            opaque = callable(value) and (len(whole) == len(chain) or not isinstance(value, type))
            yield Source(("chain", known, name, whole), value, f": {name}.{'.'.join(whole)}", opaque=opaque)
            return
