"""Operators that ONNX does not have are replaced at their places; torch's trace of the whole program is the oracle."""

import contextlib

import onnxruntime
import pytest
import torch
from torch.onnx._internal.exporter import _fx_passes

import dy2st
from dy2st.onnx.passes import missing_operators

X = torch.tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
torch.manual_seed(0)
CELL = torch.nn.GRUCell(3, 2).requires_grad_(False)
ROWS = {"x": {0: torch.export.Dim("rows", min=1)}}


def plain(x):
    return torch.relu(x) + 1


def casts(x):
    return x.to(torch.float32), x.to(torch.float64), x.to(torch.int64), 2 - x


def numbers(x):
    threshold = x.max().item()
    if threshold > 1:
        return x * threshold
    return x - threshold


def sizes(x):
    return x.square() / x.shape[0], torch.eye(x.shape[0]), x.movedim(0, 1)


def in_an_arm(x):
    if x.sum() > 0:
        return torch.logdet(torch.eye(3) + x.T @ x).reshape(1), 1 - x
    return x.numel() - x[0, :1].square(), x.to(torch.float32)


def in_a_loop(x):
    hidden = torch.zeros(x.shape[0], 2)
    while hidden.sum().abs() < 3 and x.abs().sum() < 50:
        hidden = hidden + CELL(x.square()).detach().to(torch.float32).abs()
        if hidden.mean() > 1:
            hidden = hidden * 2 - hidden.square()
        x = 1 - 1.5 * x
    return hidden, x


def several_results(x):
    low, high = x.aminmax()
    sign, size = torch.slogdet(x.T @ x + torch.eye(3))
    return low, high, sign, size, torch.var_mean(x, 1), torch.linalg.solve(x.T @ x + torch.eye(3), x[0])


def of_data(x):
    found = x[x > 0]
    if found.numel() > 2:
        return found.square().outer(found), 1 - found.to(torch.float64)
    return found.outer(found), found.to(torch.float64)


def written_to(x):
    total = x.clone()
    total += x.square()
    return total, 1 - x


def written_in_subgraphs(x):
    total, other = torch.zeros(3), x.sum(0)
    same = total
    for row in x:
        total += row.to(torch.float32)
        if total.sum() > 1:
            other.mul_(2).sub_(row)
            total.clamp_(max=2)
    if other.sum() > 100:
        raise ValueError("too much")
    return total, same + 1, other, 1 - x


def written_in_views(x):
    total = x.clone()
    first = total[0]
    first += 1
    return written_to(x), total, 1 - x


def widened(x):
    total = torch.zeros(3, dtype=torch.float32)
    total += x.sum(0).double()
    return total, 1 - x


ALONE = [plain, casts, numbers, sizes, in_an_arm, in_a_loop, several_results, written_to, written_in_subgraphs]


@contextlib.contextmanager
def counted(monkeypatch):
    """How often torch traces a whole program."""
    calls, native = [], _fx_passes.decompose_with_registry
    with monkeypatch.context() as patch:
        patch.setattr(_fx_passes, "decompose_with_registry", lambda *args: calls.append(args) or native(*args))
        yield calls


def results_of(model, args):
    program = dy2st.onnx.export(model, (X,), dynamic_shapes=ROWS)
    run = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    return [run.run(None, {"x": x.numpy()}) for x in args]


@pytest.mark.slow_for("in_a_loop")
@pytest.mark.parametrize("model", [*ALONE, of_data, written_in_views, widened])
def test_as_if_torch_had_traced_it_whole(model, monkeypatch):
    args = [X, -X, X[:1], torch.cat([X, 0.1 * X])]
    with counted(monkeypatch) as calls:
        ours = results_of(model, args)
    assert bool(calls) == (model not in ALONE)
    with monkeypatch.context() as patch:
        patch.setattr(missing_operators, "decompose", refusing)
        torchs = results_of(model, args)
    for mine, theirs in zip(ours, torchs, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(torch.from_numpy(one), torch.from_numpy(other), equal_nan=True)


def refusing(*_):
    raise missing_operators._RetraceError
