"""``torch.linalg`` functions that raise for some matrices: the program has the test as a guard.

Inside torch such a function is one that says how it went (``info``), and an operator without results that raises for
it. Nothing in a graph is computed for the sake of the latter; so it is a guard, as any other place at which eager
raises.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import CaughtError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.try_statement import raise_if
from dy2st.staging.conditions import require
from dy2st.staging.session import MODE
from dy2st.tracing.matrix_ops import triangular_op
from dy2st.values.staged_text import UNKNOWN, NumberedText

SINGULAR = "the matrix is singular"
INDEFINITE = "the matrix is not positive-definite"
# What eager says, word for word; the numbers in it are data.
_SAID = {
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the leading minor"
    f" of order {UNKNOWN} is not positive-definite).",
    "inv": f"The diagonal element {UNKNOWN} is zero, the inversion could not be completed because the input matrix is"
    " singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "lu_factor": f"U[{UNKNOWN},{UNKNOWN}] is zero and using it on lu_solve would result in a division by zero. If you"
    " still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
}
_UNDER_TORCH = ("solve", "lu_factor")


def _require(info: torch.Tensor, name: str, what: str) -> None:
    """Eager raises unless ``info`` is zero for all matrices; so does the graph."""
    capture = MODE.capture
    assert capture is not None
    error = _error(name, batched=info.dim() > 0)
    if capture.catching(error) is not None:
        raise_if(capture, (info != 0).any(), error, location_of(users_frame()))
        return
    if capture.may_catch(type(error)):
        raise CaughtError(
            f"torch.linalg.{name} may raise in a try statement that may catch it",
            hint=f"call torch.linalg.{name}_ex, and test its info with an if in place of the try",
        )
    capture.guards.require((info == 0).all(), location_of(users_frame()), f"torch.linalg.{name}: {what}", always=True)


def _error(name: str, *, batched: bool) -> Exception:
    """What eager raises."""
    kind = RuntimeError if name == "lu_factor" else torch.linalg.LinAlgError  # type: ignore[attr-defined]
    element = f"(Batch element {UNKNOWN}): " if batched else ""
    return kind(NumberedText(f"{'torch.' * (name in _UNDER_TORCH)}linalg.{name}: {element}{_SAID[name]}"))


@replaces(torch.linalg.solve)
def _solve(a: Any, b: Any, *, left: bool = True) -> Any:
    result, info = torch.linalg.solve_ex(a, b, left=left)
    _require(info, "solve", SINGULAR)
    return result


@replaces(torch.linalg.solve_triangular, sized=True)
def _solve_triangular(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """Of one matrix whose size is data-dependent."""
    sizes = (*a.shape, *b.shape)
    single = a.dim() == b.dim() == 2 and a.dtype is b.dtype and a.is_floating_point()
    if not single or not any(isinstance(n, torch.SymInt) and free_unbacked_symbols(n) for n in sizes):
        return NotImplemented
    for size in (a.shape[1], b.shape[0 if left else 1]):
        require(a.shape[0] == size, RuntimeError)
    return triangular_op(a, b, bool(upper), left, unitriangular)


@replaces(torch.linalg.inv, "inverse")
def _inv(a: Any) -> Any:
    result, info = torch.linalg.inv_ex(a)
    _require(info, "inv", SINGULAR)
    return result


@replaces(torch.linalg.cholesky, "cholesky")
def _cholesky(a: Any, upper: bool = False) -> Any:
    result, info = torch.linalg.cholesky_ex(a, upper=upper)
    _require(info, "cholesky", INDEFINITE)
    return result


@replaces(torch.linalg.lu_factor)
def _lu_factor(a: Any, *, pivot: bool = True) -> Any:
    factors, pivots, info = torch.linalg.lu_factor_ex(a, pivot=pivot)
    _require(info, "lu_factor", SINGULAR)
    return torch.return_types.linalg_lu_factor((factors, pivots))  # type: ignore[attr-defined]


@replaces(torch.linalg.matrix_power, "matrix_power")
def _matrix_power(a: Any, n: int) -> Any:
    return torch.linalg.matrix_power(a, n) if n >= 0 else torch.linalg.matrix_power(_inv(a), -n)


@replaces(torch.linalg.tensorinv)
def _tensorinv(a: Any, ind: int = 2) -> Any:
    rows, columns = a.shape[:ind], a.shape[ind:]
    return _inv(a.reshape(math.prod(columns), math.prod(rows))).reshape(*columns, *rows)


@replaces(torch.linalg.tensorsolve)
def _tensorsolve(a: Any, b: Any, dims: Any = None) -> Any:
    if dims is not None:
        a = a.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    columns = a.shape[b.dim() :]
    return _solve(a.reshape(math.prod(b.shape), math.prod(columns)), b.flatten()).reshape(columns)


def _checking(function: Any, name: str, what: str, *args: Any, check_errors: bool = False, **kwargs: Any) -> Any:
    """A function that raises if it is told to."""
    result = function(*args, **kwargs)
    if check_errors:
        _require(result.info, name, what)
    return result


for _function, _name, _what in (
    (torch.linalg.solve_ex, "solve", SINGULAR),
    (torch.linalg.inv_ex, "inv", SINGULAR),
    (torch.linalg.cholesky_ex, "cholesky", INDEFINITE),
    (torch.linalg.lu_factor_ex, "lu_factor", SINGULAR),
):
    replaces(_function)(functools.partial(_checking, _function, _name, _what))
