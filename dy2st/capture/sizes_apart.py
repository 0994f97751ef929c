"""A model's code in both arms of a branch on a size, where it can't be staged once for all sizes.

``staging.excluded_sizes`` says when that is so.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, cast

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from dy2st.plan import plan
from dy2st.source.rewriting import rewrite
from dy2st.staging.conditions import condition
from dy2st.staging.excluded_sizes import SizeBranches
from dy2st.staging.routes import AROUND, Copy
from dy2st.staging.session import MODE
from dy2st.staging.sites import Sites, site_of
from dy2st.tracing.size_facts import expression

AROUND.add(__file__)


def take_excluded_sizes_apart(branches: SizeBranches, env: ShapeEnv, sites: Sites) -> None:
    """At the end of a capture: give it up for one that traces the arms of a condition apart, if one is excluded.

    The paths of the condition stay those of the user's source.
    """
    excluded = branches.excluded(env)
    if excluded is not None:
        test, places = excluded
        known = {site_of(place, "if") for place in places}
        plan().take_sizes_apart(test, {copy: what for copy, what in sites.found.items() if copy[:4] in known})


def with_sizes_apart(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run``, in both arms of a branch on each of the plan's conditions on the sizes of its arguments."""
    for test, copies in plan().sizes_apart.items():
        run = _with_size_apart(run, test, copies)
    return run


def _with_size_apart(run: Callable[..., Any], test: sympy.Expr, copies: dict[Copy, Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        every: list[Any] = [size for each in tensors for size in each.shape]
        sizes = {str(expression(size)): size for size in every if isinstance(size, torch.SymInt)}
        if not {str(each) for each in test.free_symbols} <= sizes.keys():
            return run(*args, **kwargs)
        given = {symbol: sizes[str(symbol)] for symbol in test.free_symbols}
        holds = sympy_interp(PythonReferenceAnalysis, given, test)
        if isinstance(condition(holds), bool):  # around this one is another condition, which says it
            return run(*args, **kwargs)
        either: Callable[..., Any] = rewrite(cast("types.FunctionType", in_either))
        sites = MODE.capture.sites.found if MODE.capture is not None else {}
        known = len(sites)
        found = either(holds, run, args, kwargs)
        for ours in list(sites)[known : known + 1]:
            del sites[ours]
        sites.update(copies)
        return found

    return call


def in_either(holds: Any, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run in both arms. It is converted."""
    if holds:
        return run(*args, **kwargs)
    return run(*args, **kwargs)
