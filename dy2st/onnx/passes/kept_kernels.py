"""The kernels under which torch decomposes a program, made once in a process.

To lower a program, torch registers some twelve thousand kernels and takes them back: fifteen for each operator that is
a composite of others, twice. That is a third of the export of a small model. What was registered is kept here, and put
in place at once where the same is to be decomposed and the operators are as they were.

Source: ``_override_composite_implicit_decomp`` and ``_split_decomp_table_to_cia_and_python_decomp`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses import fake_impls
from torch.export import exported_program

from dy2st.tracing.replaced import replaced

Decompositions = Mapping[Any, Callable[..., Any]]


@dataclass(frozen=True)
class _Kernels:
    """The Python kernels of operators, and their rules for tensors without data."""

    of: dict[Any, dict[Any, Any]]
    rules: dict[Any, Any]

    @classmethod
    def now(cls, operators: Decompositions) -> _Kernels:
        rules = fake_impls.op_implementations_dict
        return cls({op: dict(op.py_kernels) for op in operators}, {op: rules[op] for op in operators if op in rules})

    def put_in_place(self) -> None:
        rules = fake_impls.op_implementations_dict
        for op, kernels in self.of.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
            rules.pop(op, None)
        rules.update(self.rules)


# What was made, by what is to be decomposed and how: before, and while a program is lowered.
_made: dict[frozenset[Any], tuple[_Kernels, _Kernels]] = {}
# Of a table of decompositions, those of composite operators and the others.
_split: dict[Any, tuple[dict[Any, Any], dict[Any, Any]]] = {}
# More tables than these are not in use at a time.
_MOST = 4


def keeping_kernels() -> AbstractContextManager[None]:
    """Within, torch puts in place what was made for an earlier program."""
    ours = [
        (exported_program, name, wrapped(getattr(exported_program, name)))
        for name, wrapped in (
            ("_override_composite_implicit_decomp", _overriding),
            ("_split_decomp_table_to_cia_and_python_decomp", _splitting),
        )
    ]
    return replaced(ours)


def operators_known() -> tuple[int, int]:
    """A mark that changes when operators are registered, or composite kernels of them."""
    composite: Any = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
    return len(torch._C._dispatch_get_all_op_names()), len(composite)


def _overriding(make: Callable[[Decompositions], AbstractContextManager[None]]) -> Callable[..., Any]:
    @contextlib.contextmanager
    def _override_composite_implicit_decomp(cia_ops_to_callable: Decompositions) -> Iterator[None]:
        key = frozenset(cia_ops_to_callable.items())
        before = _Kernels.now(cia_ops_to_callable)
        known = _made.get(key)
        try:
            if known is not None and known[0] == before:
                known[1].put_in_place()
                yield
            else:
                with make(cia_ops_to_callable):
                    _keep(_made, key, (before, _Kernels.now(cia_ops_to_callable)))
                    yield
        finally:
            # torch forgets the rules that operators had.
            before.put_in_place()

    return _override_composite_implicit_decomp


def _splitting(make: Callable[[Any], tuple[dict[Any, Any], dict[Any, Any]]]) -> Callable[..., Any]:
    def _split_decomp_table_to_cia_and_python_decomp(decomp_table: dict[Any, Any]) -> Any:
        key = frozenset(decomp_table.items()), operators_known()
        if key not in _split:
            _keep(_split, key, make(dict(decomp_table)))
        composite, others = _split[key]
        return dict(composite), dict(others)

    return _split_decomp_table_to_cia_and_python_decomp


def _keep(made: dict[Any, Any], key: Any, value: Any) -> None:
    if len(made) >= _MOST:
        made.clear()
    made[key] = value
