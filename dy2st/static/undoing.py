"""What a program has done when it comes to where eager raises: put back, so that eager can do it and raise.

A program stops there with an error of its own. Eager's run of the same call raises what the user's code raises, and
leaves what that leaves: it has to begin with what the program has begun with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram

from dy2st.capture.program import MESSAGES
from dy2st.static.clones import Clones
from dy2st.static.executable import NOT_OF_THE_CODE
from dy2st.static.subgraphs import inputs_of
from dy2st.tracing.guards import require_op
from dy2st.tracing.subgraph import graph_modules

# On an error of a program whose writes have been undone.
_UNDONE = "dy2st_undone"


def undone_where_eager_raises(program: ExportedProgram, forward: Callable[..., Any]) -> Callable[..., Any]:
    """``forward``, which puts back what it has written to its inputs, and the random numbers drawn, if it raises.

    What a program has said it can't unsay, and what it has written to a tensor with a history stays there.
    """
    module = program.graph_module
    nodes = [node for each in graph_modules(module) for node in each.graph.nodes]
    if not any(node.target is require_op for node in nodes) or module.meta.get(MESSAGES):
        return forward
    written = Clones(module).written_inputs(cloning=True)
    places = [i for i, node in enumerate(inputs_of(module)) if node in written]
    draws = any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in nodes)
    if not places and not draws:
        return forward

    def run(*inputs: Any) -> Any:
        targets = [inputs[i] for i in places]
        if any(each.requires_grad for each in targets):
            return forward(*inputs)
        before = [each.detach().clone() for each in targets]
        state = torch.get_rng_state() if draws else None
        try:
            return forward(*inputs)
        except NOT_OF_THE_CODE:
            raise
        except Exception as error:
            with torch.no_grad():
                for each, old in zip(targets, before, strict=True):
                    each.copy_(old)
            if state is not None:
                torch.set_rng_state(state)
            setattr(error, _UNDONE, True)
            raise

    return run


def is_undone(error: Exception) -> bool:
    """Whether a program that has raised this has left nothing behind."""
    return getattr(error, _UNDONE, False)
