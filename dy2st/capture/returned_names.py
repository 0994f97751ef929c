"""What a function calls its results: ``return logits, cache`` gives ``logits`` and ``cache``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dy2st.conversion import entry_function
from dy2st.errors import Dy2stError
from dy2st.source.assigning_lines import inside
from dy2st.source.find import find
from dy2st.source.rewriting import original

# Of a program's graph module: the names that the source has for the results.
RETURNED = "dy2st.returned"


def returned_names(call: Any) -> dict[str, str]:
    """Names by place, ``output[0]`` or ``output``: those of variables that all of a function's returns agree on.

    A return of an expression has no say in it. Nothing for what has no source.
    """
    try:
        (found, *_) = find(original(entry_function(call)))
    except (Dy2stError, ValueError):
        return {}
    if isinstance(found.node, ast.Lambda):
        returned = [found.node.body]
    else:
        nodes = (node for statement in found.node.body for node in inside(statement))
        returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    names: dict[str, set[str]] = {}
    for value in returned:
        for place, part in _parts(value):
            if isinstance(part, ast.Name):
                names.setdefault(place, set()).add(part.id)
    return {place: named.pop() for place, named in names.items() if len(named) == 1}


def _parts(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(value, ast.Tuple | ast.List):
        yield "output", value
    elif not any(isinstance(part, ast.Starred) for part in value.elts):
        yield from ((f"output[{i}]", part) for i, part in enumerate(value.elts))
