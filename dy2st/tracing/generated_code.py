"""The Python code of graph modules, generated where something asks for it.

torch.fx writes and compiles the code of a graph module whenever it gets a graph and after every pass, and that of all
modules inside of it as well: a third of the time of an export. Passes interpret graphs, so hardly any of it ever runs.
Here a module's ``recompile`` only marks the code as due. Its ``forward`` or its ``code`` generates it when it is read.

Source: ``GraphModule.recompile`` and ``torch.fx._lazy_graph_module`` of torch 2.13. The latter is a class of its own,
which torch.export does not use, and hides the signature of ``forward``, which torch.export reads.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from torch import fx
from torch.fx.graph_module import _WrappedCall

GENERATED = ("_code", "_lineno_map", "_prologue_start")

_generate = fx.GraphModule.recompile
_lock = threading.Lock()
_within: list[None] = []


@contextlib.contextmanager
def generated_on_demand() -> Iterator[None]:
    """Within, graph modules generate their code where it is read; what is not read by the end waits as well."""
    with _lock:
        _within.append(None)
        fx.GraphModule.recompile = _mark  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        with _lock:
            _within.pop()
            if not _within:
                fx.GraphModule.recompile = _generate  # type: ignore[method-assign]


class _Due:
    """An attribute of the class of one graph module (each has a class of its own) that is generated when it is read."""

    def __init__(self, module: fx.GraphModule, name: str) -> None:
        self.module, self.name = weakref.ref(module), name

    def __get__(self, instance: Any, owner: type) -> Any:
        module = self.module()
        assert module is not None
        # The modules inside were marked when this one was, or have been generated since.
        module.__dict__["_recompile_submodules"] = list
        try:
            _generate(module)
        finally:
            del module.__dict__["_recompile_submodules"]
        return getattr(owner if instance is None else instance, self.name)


def _mark(module: fx.GraphModule) -> None:
    """In place of ``GraphModule.recompile``: what it does at once beside generating code, and marks for the rest."""
    pytree = getattr(module._graph._codegen, "pytree_info", None)
    if pytree is not None:
        module._in_spec, module._out_spec = pytree.in_spec, pytree.out_spec
    made: Any = type(module)
    for name in GENERATED:
        module.__dict__.pop(name, None)
    for name in ("forward", *GENERATED):
        setattr(made, name, _Due(module, name))
    if "_wrapped_call" not in vars(made):
        made._wrapped_call = _WrappedCall(made, vars(made).get("__call__"))
        made.__call__ = _call
    module._recompile_submodules()


def _call(module: Any, *args: Any, **kwargs: Any) -> Any:
    return module._wrapped_call(module, *args, **kwargs)
