"""Tests of dynamic sizes that torch would settle by the example: each is asked of us first.

Source: ``ShapeEnv.evaluate_expr`` and ``statically_known_true`` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from dy2st.tracing.replaced import replaced


def is_open(env: ShapeEnv, expr: Any, *, size_oblivious: bool = False) -> bool:
    """Whether a test depends on a size, is not settled by what is known, and would leave a guard."""
    if ShapeEnv._suppress_guards_tls() or not getattr(expr, "free_symbols", ()):
        return False
    return env._maybe_evaluate_static(expr, size_oblivious=size_oblivious) is None


def asking(env: ShapeEnv, decide: Callable[[Any, Callable[[], Any]], Any]) -> AbstractContextManager[None]:
    """Let ``decide(expr, run)`` say how an open test comes out; ``run`` lets torch say it, and note a guard."""
    evaluate, disproves = env.evaluate_expr, symbolic_shapes._sym_node_hint_disproves
    example = dict(env.backed_var_to_val)

    def is_moved() -> bool:
        """Whether other sizes stand for the example's (``tracing.example_sizes``), which symbolic numbers keep."""
        return any(env.backed_var_to_val[symbol] != size for symbol, size in example.items())

    def _sym_node_hint_disproves(node: Any, target: bool) -> bool:
        return not is_moved() and disproves(node, target)

    def evaluate_expr(
        expr: Any,
        hint: Any = None,
        fx_node: Any = None,
        size_oblivious: bool = False,
        fallback_value: bool | None = None,
        *,
        forcing_spec: bool = False,
    ) -> Any:
        def run() -> Any:
            nonlocal hint
            if is_moved():
                hint = None
            return evaluate(expr, hint, fx_node, size_oblivious, fallback_value, forcing_spec=forcing_spec)

        is_asked = fallback_value is None and is_open(env, expr, size_oblivious=size_oblivious)
        return decide(expr, run) if is_asked else run()

    ours = [
        (env, "evaluate_expr", evaluate_expr),
        (symbolic_shapes, "_sym_node_hint_disproves", _sym_node_hint_disproves),
    ]
    return replaced(ours)
