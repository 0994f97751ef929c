"""Singular vectors and eigenvectors in ONNX: given where their signs cancel out, guarded where more than that matters.

The law of the analysis: what it accepts is the same under other signs of the vectors. ``under_other_signs`` writes the
file with signs turned, and the file has to give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, linalg
from torch.export import Dim

import dy2st
from dy2st.errors import UntranslatedError
from dy2st.onnx.building import DOUBLE, op
from dy2st.onnx.translations import spectra
from tests.onnx.test_solvers import agree, matrices, run, session_of

Model = Callable[..., Any]


def powers(a: Tensor) -> Any:
    values, vectors = linalg.eigh(a @ a.mT)
    if values[..., 0].sum() > 0.1:
        values = values * 2
    scaled = vectors * values.sqrt().unsqueeze(-2)
    other = torch.einsum("...ij,...j,...kj->...ik", vectors, values.exp(), vectors)
    return scaled @ vectors.mT, vectors @ torch.diag_embed((-values).exp()) @ vectors.mT, other


def spectral_function(a: Tensor) -> Any:
    values, v = linalg.eigh((a + a.T) / 2)
    return (
        v @ torch.diag(values.clamp(min=0)) @ v.T,
        v @ (values.tanh()[:, None] * v.t()),
        torch.einsum("ij,j,kj->ik", v, values**2, v),
        linalg.det(v).abs(),
        linalg.det(v) * v.det(),
    )


def whitened(x: Tensor) -> Any:
    centred = x - x.mean(0)
    values, v = linalg.eigh(centred.T @ centred / x.shape[0])
    return centred @ (v @ torch.diag((values + 1e-3).rsqrt()) @ v.t())


def parts(a: Tensor) -> Any:
    _, v = linalg.eigh(a @ a.T)
    first = v[:, -1]
    return torch.outer(first, first), first.abs(), v[:, 1:] @ v[:, 1:].T, v.square(), (a * v[:, :1].T).sum(1) ** 2


def thresholded(x: Tensor) -> Any:
    u, s, v = linalg.svd(x, full_matrices=False)
    kept = torch.clamp(s - 0.5, min=0)
    if kept.sum() > 3:
        kept = kept * 0.5
    return (u * kept) @ v, u @ torch.diag(s) @ v, u @ torch.diag(torch.where(s > 1, s, 0.0)) @ v


def polar(x: Tensor) -> Any:
    u, s, v = torch.svd(x)
    return u @ v.T, v @ torch.diag(s) @ v.T


def aligned(p: Tensor, q: Tensor) -> Any:
    """Kabsch's algorithm, with a condition."""
    u, _, vt = linalg.svd((p - p.mean(0)).T @ (q - q.mean(0)))
    rotation = vt.T @ u.T
    if linalg.det(rotation) < 0:
        vt[2, :] *= -1
        rotation = vt.T @ u.T
    return rotation


def all_aligned(p: Tensor, q: Tensor) -> Any:
    """The same of a batch, with a diagonal matrix."""
    u, _, vt = linalg.svd(p.mT @ q)
    diagonal = torch.eye(3).repeat(p.shape[0], 1, 1)
    diagonal[:, 2, 2] = torch.sign(linalg.det(u @ vt))
    one = torch.ones(p.shape[0], 3)
    one[:, -1] = linalg.det(u) * linalg.det(vt)
    return u @ diagonal @ vt, u @ torch.diag_embed(one) @ vt, (u * one.unsqueeze(1)) @ vt


SQUARE = [(matrices(3, 3, seed=seed),) for seed in range(3)]
CLOUDS = [tuple(matrices(6, 3, seed=seed + k) for k in (0, 9)) for seed in range(4)]
BATCHES = [tuple(matrices(n, 6, 3, seed=n + k) for k in (0, 9)) for n in (2, 3, 4)]
CASES: list[tuple[Model, list[tuple[Tensor, ...]], Any]] = [
    (powers, [(matrices(n, 3, 4),) for n in (1, 2, 3)], ({0: Dim.DYNAMIC},)),
    (spectral_function, SQUARE, None),
    (whitened, [(matrices(n, 4),) for n in (9, 7, 12)], ({0: Dim.DYNAMIC},)),
    (parts, SQUARE, None),
    (thresholded, [(matrices(n, 3),) for n in (4, 3, 6)], ({0: Dim("n", min=3)},)),
    (polar, SQUARE, None),
    (aligned, CLOUDS, None),
    (all_aligned, BATCHES, ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})),
]


@pytest.mark.parametrize(("model", "calls", "shapes"), CASES, ids=[model.__name__ for model, *_ in CASES])
def test_signs_that_cancel_out(model: Model, calls: list[Any], shapes: Any) -> None:
    agree(model, *calls, shapes=shapes)


@pytest.mark.parametrize(("model", "calls", "shapes"), CASES, ids=[model.__name__ for model, *_ in CASES])
def test_under_other_signs(model: Model, calls: list[Any], shapes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    native = spectra.orthogonalised

    def turned(a: ir.Value) -> tuple[ir.Value, ir.Value]:
        made, v = native(a)
        odd = op("Mod", op("Range", 0, op("Squeeze", op("Shape", v, start=-1), [0]), 1), 2)
        signs = op("Sub", 1.0, op("Mul", 2.0, op("Cast", odd, to=DOUBLE, dtype=DOUBLE)))
        found = op("Mul", made, op("Cast", signs, to=DOUBLE, dtype=DOUBLE)), op("Mul", v, signs)
        for new, old in zip(found, (made, v), strict=True):
            new.shape = old.shape
        return found

    monkeypatch.setattr(spectra, "orthogonalised", turned)
    agree(model, *calls, shapes=shapes)


def test_vectors_of_zero_are_given_where_they_do_not_count() -> None:
    low = matrices(5, 2) @ matrices(2, 4, seed=1)
    agree(thresholded, (low,), (torch.zeros(5, 4),), (matrices(5, 4),))
    agree(spectral_function, (torch.eye(3),), (torch.diag(torch.tensor([1.0, 2.0, 2.0])),), (torch.zeros(3, 3),))
    batch = torch.stack([low, matrices(5, 4)])

    def of_batch(x: Tensor) -> Any:
        u, s, v = linalg.svd(x, full_matrices=False)
        return (
            (u * (torch.sign(s) * torch.clamp(s.abs() - 0.1, min=0)).unsqueeze(-2)) @ v,
            u @ torch.diag_embed(s.clamp(min=0.1) - 0.1) @ v,
            (u * s.relu().unsqueeze(-2)) @ v,
            u @ (s[..., None] * v),
        )

    agree(of_batch, (batch,), (batch + 1,))


def softened(x: Tensor) -> Any:
    u, s, v = linalg.svd(x)
    return (u * (s + 1)) @ v


def projected(a: Tensor) -> Any:
    _, v = linalg.eigh(a)
    return v[:, 1:] @ v[:, 1:].T


LOW = matrices(3, 2) @ matrices(2, 3, seed=1)


@pytest.mark.parametrize(
    ("model", "wrong", "message"),
    [
        (lambda x: polar(x)[0], LOW, "not zero"),
        (softened, LOW, "not zero"),
        (projected, torch.diag(torch.tensor([1.0, 1.0, 2.0])), "that differ"),
        (lambda x: linalg.svd(x)[0].abs(), torch.eye(3), "that differ"),
    ],
)
def test_what_takes_more_than_signs_is_guarded(model: Model, wrong: Tensor, message: str) -> None:
    right = torch.diag(torch.tensor([3.0, 2.0, 1.0])) + 0.1
    session = session_of(model, (right,))
    torch.testing.assert_close(run(session, (right,))[0], model(right), rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match=message):
        run(session, (wrong,))


def in_a_loop(a: Tensor) -> Tensor:
    _, v = linalg.eigh(a @ a.T)
    while v.abs().max() > 0.5:
        v = v / 2
    return v @ v.T


def by_path(a: Tensor) -> Tensor:
    _, v = linalg.eigh(a @ a.T)
    if a.sum() > 0:
        v = a
    return v @ v.T


@pytest.mark.parametrize(
    "model",
    [
        lambda a: linalg.eigh(a)[1],
        lambda a: torch.relu(linalg.svd(a)[0]) @ linalg.svd(a)[2],
        lambda a: linalg.svd(a)[0] @ linalg.svd(2 * a)[2],
        lambda a: linalg.svd(a)[0] @ linalg.svd(a)[0],
        lambda a: linalg.eigh(a)[1].argmax(),
        lambda a: linalg.eigh(a)[1] @ a,
        lambda a: linalg.eigh(a)[1].sum(1),
        lambda a: linalg.eigh(a)[1][:, 0] * a[0],
        lambda a: linalg.eigh(a)[1] + 1,
        lambda a: linalg.svd(a[:2])[2],
        lambda a: linalg.svd(a)[0] @ torch.flip(linalg.svd(a)[2], (0,)),
        in_a_loop,
        by_path,
    ],
)
def test_what_may_tell_signs_apart_is_refused(model: Model) -> None:
    with pytest.raises(UntranslatedError) as caught:
        dy2st.onnx.export(model, (matrices(3, 3),))
    assert caught.value.location is not None
    assert "no definite sign" in str(caught.value) or "full_matrices" in str(caught.value)
