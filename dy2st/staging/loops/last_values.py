"""What variables are after a ``break``, where no iteration begins with it.

    while True:
        found.append(x)
        if x.sum() > 9:
            found = torch.cat(found)
            break

At the head of an iteration ``found`` is a list, and a tensor only behind the loop. So it is a result of the loop of its
own, as a returned value is, and no part of the state that iterations hand on.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from dy2st.staging.branches.paths import merge
from dy2st.staging.flow import Flow, left_key, left_names
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.template import LoopStatement
from dy2st.tracing.subgraph import Subgraph
from dy2st.values.number import Number
from dy2st.values.undefined import UNSET

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_KNOWN = (*_CONTAINERS, torch.Tensor, Number, int, float, str)


def left_apart(loop: LoopStatement, kind: str, env: dict[Any, Any], state: LoopState | None) -> dict[Any, Any]:
    """The variables at a jump of a ``kind``: at a ``break`` a container that has become something else is what it was.

    So is what has become one. ``state`` has what the variables are at the head of the iteration, if the loop is staged.
    """
    head = loop.before if state is None else state.head
    if kind != "break":
        return env
    others = {name: head[name] for name in loop.names if name in head and _is_other(head[name], env.get(name, UNSET))}
    return {**env, **others, **{left_key(loop, name): env[name] for name in others}}


def _is_other(old: Any, new: Any) -> bool:
    known = isinstance(old, _KNOWN) and isinstance(new, _KNOWN)
    if not known or type(old) is type(new):
        return False  # what is not there on some path, or one of several things, is carried as that
    return isinstance(old, _CONTAINERS) or isinstance(new, _CONTAINERS)


def with_left(
    loop: LoopStatement, values: dict[Any, Any], flags: dict[Any, Any], *, endless: bool = False
) -> dict[Any, Any]:
    """The variables after a loop: those that a ``break`` has left, where one was made.

    Behind one that is ``endless`` but for its jumps, one was made, unless the function was left.
    """
    left = {key[2]: values[key] for key in left_names(values, loop)}
    broke = flags.get(("break", loop), False)
    values = {key: value for key, value in values.items() if key not in left_names(values, loop)}
    if not left or broke is False:
        return values
    if broke is True or (endless and all(key == ("break", loop) or key[0] == "return" for key in flags)):
        return values | left
    capture = loop.capture
    arms = [
        Subgraph.open(capture.tracing, capture.subgraph, f"{name}_{loop.location.line}") for name in ("left", "ended")
    ]
    others = {name: values.get(name, UNSET) for name in left}
    flow = merge(capture, broke, (arms[0], arms[1]), (Flow(left), Flow(others)), tuple(left), loop.location)
    return values | flow.env
