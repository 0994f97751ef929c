"""What a program returns, as JSON, and how it is put together of the program's flat results.

``{"leaf": [number, kind]}`` is one of these, ``kind`` the type of Python's number that it is; ``list``, ``tuple``,
``dict``, ``ordered`` (a dict), ``named`` (a named tuple, which is made anew of its names) and ``torch`` (what
``torch.topk`` gives, say) are containers; ``value`` is a constant. ``rows`` is a list of data-dependent length, and
``one of`` is one of several things, by path: their parts, and what says how they are made of these.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.program import BUILD, NUMBERS
from dy2st.capture.result_forms import FORMS, ListForm, described, made_as_described
from dy2st.errors import UnsavableError
from dy2st.static.saved_format import decoded, encoded, is_name
from dy2st.static.subgraphs import results_of
from dy2st.values.describing import describe

Build = Callable[[Sequence[Any]], Any]
_KINDS: dict[str, type] = {"bool": bool, "int": int, "float": float}


class _Leaf:
    """Stands for a flat result."""

    def __init__(self, number: int) -> None:
        self.number = number


def result_to_json(program: torch.export.ExportedProgram) -> Any:
    """What a program's function returns.

    Raises:
        UnsavableError: it is an object of another kind.
    """
    meta, spec = program.graph_module.meta, program.call_spec.out_spec
    leaves = [_Leaf(i) for i in range(len(results_of(program.graph_module)))]
    whole = tuple(leaves) if spec is None else pytree.tree_unflatten(leaves, spec)
    if meta.get(BUILD) is not None:
        try:
            whole = meta[BUILD](whole)
        except (TypeError, ValueError) as error:
            raise UnsavableError(f"what the function returns can't be described: {error}") from error
    kinds = [None if kind is None else kind.__name__ for kind in meta.get(NUMBERS) or []]
    return _to_json(whole, kinds)


def _to_json(value: Any, kinds: Sequence[str | None]) -> Any:
    if isinstance(value, _Leaf):
        return {"leaf": [value.number, kinds[value.number] if value.number < len(kinds) else None]}
    if type(value) is dict or type(value) is collections.OrderedDict:
        pairs = [[encoded(key), _to_json(each, kinds)] for key, each in value.items()]
        return {"dict" if type(value) is dict else "ordered": pairs}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts, kind = [_to_json(each, kinds) for each in value], type(value)
        if kind in (list, tuple):
            return {kind.__name__: parts}
        if kind.__module__ == "torch.return_types":
            return {"torch": [kind.__name__, parts]}
        if hasattr(kind, "_fields"):
            return {"named": [kind.__name__, list(kind._fields), parts]}
    if isinstance(value, FORMS):
        parts, context = described(value)
        told = [_to_json(each, kinds) for each in parts]
        return {"rows" if isinstance(value, ListForm) else "one of": [told, context]}
    try:
        return {"value": encoded(value)}
    except UnsavableError as error:
        raise UnsavableError(
            f"the function returns {describe(value)}", hint="return tensors and numbers, in containers"
        ) from error


def result_from_json(made: Any, count: int) -> Build:
    """A function of ``count`` flat results that gives what ``result_to_json`` has described.

    Raises:
        ValueError: that is not what ``made`` is (or another error of Python's).
    """
    ((kind, content),) = made.items()
    if kind == "leaf":
        number, name = content
        if type(number) is not int or not 0 <= number < count:
            raise ValueError(number)
        return _leaf(number, None if name is None else _KINDS[name])
    if kind == "value":
        value = decoded(content)
        return lambda _: value
    if kind in ("rows", "one of"):
        columns = [result_from_json(each, count) for each in content[0]]
        make_form = made_as_described(content[1], len(columns), is_list=kind == "rows")
        return lambda flat: make_form([column(flat) for column in columns]).value()
    if kind in ("dict", "ordered"):
        pairs = [(decoded(key), result_from_json(each, count)) for key, each in content]
        mapping = dict if kind == "dict" else collections.OrderedDict
        return lambda flat: mapping([(key, part(flat)) for key, part in pairs])
    parts = [result_from_json(each, count) for each in (content if kind in ("list", "tuple") else content[-1])]
    if kind == "list":
        return lambda flat: [part(flat) for part in parts]
    make = _maker(kind, content)
    return lambda flat: make([part(flat) for part in parts])


def _leaf(number: int, kind: type | None) -> Build:
    return (lambda flat: flat[number]) if kind is None else (lambda flat: kind(flat[number]))


def _maker(kind: str, content: Any) -> Callable[[list[Any]], Any]:
    if kind == "tuple":
        return tuple
    name = content[0]
    if kind == "torch" and is_name(name):
        found: Any = getattr(torch.return_types, name)
        if isinstance(found, type) and issubclass(found, tuple):
            return found
    elif kind == "named" and is_name(name):
        made: Any = collections.namedtuple(name, content[1])  # type: ignore[misc]  # noqa: PYI024  its names are data
        return lambda parts: made(*parts)
    raise ValueError(kind)
