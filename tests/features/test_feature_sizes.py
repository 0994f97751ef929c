"""Dynamic sizes (row 48) and sizes that are data (row 59): every size agrees with eager, or the export is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.errors import SpecializedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (4, 0, 1, 2, 7)


def matrices(*sizes: int, columns: int = 3) -> list[tuple[Tensor]]:
    """One-argument inputs: random matrices of so many rows."""
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(size, columns, generator=generator),) for size in sizes]


def signals(*sizes: int) -> list[tuple[Tensor]]:
    """One-argument inputs [2, 3, size]."""
    generator = torch.Generator().manual_seed(2)
    return [(torch.randn(2, 3, size, generator=generator),) for size in sizes]


# ---- operators at other sizes than the example's


def chunks(x: Tensor) -> Tensor:
    a, b = x.chunk(2)
    return a.sum() - b.sum() * 2


def tensor_split(x: Tensor) -> Tensor:
    a, b, c = torch.tensor_split(x, 3)
    return torch.cat([c, a, b * 2])


def split_loop(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for piece in torch.split(x, 2):
        total = total * 0.5 + piece.sum() * piece.shape[0]
    return total


def split_first(x: Tensor) -> Tensor:
    return torch.split(x, 2)[0]


def unbind(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for part in x.unbind(0):
        total = total * 0.5 + part
    return total


def diff(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.diff(x, dim=0), torch.diff(x > 0, dim=1)


def logsumexp(x: Tensor) -> Tensor:
    return torch.logsumexp(x, 0)


def slices(x: Tensor) -> tuple[Tensor, ...]:
    return x[1:], x[:-1], x[::2], x[-2:], x[1:-1], x[1:] - x[:-1]


def linspace(x: Tensor) -> Tensor:
    return torch.linspace(0, 1, x.shape[0]) * x[:, 0]


@row(48)
@pytest.mark.parametrize("model", [tensor_split, split_loop, split_first, unbind, diff, logsumexp, slices, linspace])
def test_rows(model: Callable[..., Any]) -> None:
    agree(model, matrices(*SIZES), (dyn(0),), paths=1)


@row(48)
def test_chunks_are_unpacked() -> None:
    agree(chunks, matrices(4, 0, 2, 3, 7), (dyn(0),), paths=1)


def conv(x: Tensor) -> Tensor:
    return F.conv1d(x, torch.ones(2, 3, 3), padding=1)


def pool(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.max_pool1d(x, 2, 1, 1), F.avg_pool1d(x, 1)


def ceil_pool(x: Tensor) -> Tensor:
    return F.max_pool1d(x, 2, ceil_mode=True)


def adaptive(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.adaptive_avg_pool1d(x, 2), F.adaptive_max_pool1d(x, 3)


def circular(x: Tensor) -> Tensor:
    return F.pad(x, (1, 1), mode="circular")


def interpolated(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="linear")


@row(48)
@pytest.mark.parametrize("model", [conv, pool, ceil_pool, adaptive, circular, interpolated])
def test_signals(model: Callable[..., Any]) -> None:
    agree(model, signals(5, 1, 2, 3, 8), (dyn(2),), paths=1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.cell = nn.GRUCell(8, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x)
        return y, self.cell(y[:, -1])


@pytest.mark.slow
@row(48)
def test_attention_and_cells_at_size_one() -> None:
    inputs = [(torch.randn(b, n, 8),) for b, n in [(2, 5), (1, 1), (3, 2), (1, 7)]]
    agree(Attention().eval(), inputs, (dyn(0, 1),), paths=1)


# ---- what is known of a size on one path holds there only


@row(48)
def test_what_an_operator_demands_in_an_arm_holds_there_only() -> None:
    def model(x: Tensor, flag: Tensor) -> Tensor:
        y = x.sum()
        if flag > 0:
            y = x.unfold(0, 2, 1).sum()
        if x.shape[0] < 2:
            return y - 1
        return y

    cases = [(4, 1.0), (4, -1.0), (7, 1.0), (0, -1.0), (1, -1.0), (2, 1.0)]
    agree(model, [(torch.randn(n), torch.tensor(flag)) for n, flag in cases], (dyn(0), None), paths=3)


@row(48)
def test_an_operators_rule_says_nothing_of_zero() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.logsumexp(x, 1)
        if x.shape[0] == 0:
            return y.sum() - 1
        return y.sum()

    agree(model, matrices(*SIZES), (dyn(0),))


PAIRS = [(4, 4), (4, 3), (7, 7), (0, 0), (1, 5), (2, 2), (5, 1)]


def pairs() -> list[tuple[Tensor, Tensor]]:
    """Two vectors whose sizes differ in some inputs."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(a, generator=generator), torch.randn(b, generator=generator)) for a, b in PAIRS]


@row(48, 59)
def test_equal_sizes_are_tested_for() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        if a.shape[0] == b.shape[0]:
            if a.sum() > 0:
                return a + b
            return a - b
        if a.shape[0] > b.shape[0]:
            return a[: b.shape[0]] + b
        return a + b[: a.shape[0]]

    agree(model, pairs(), (dyn(0), dyn(0)), paths=3)


@row(48)
def test_shapes_are_compared() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        if a.shape == b.shape:
            return a + b
        if a.shape == (5,):
            return a * 3
        return a * 2

    agree(model, pairs(), (dyn(0), dyn(0)), paths=3)


@row(48)
def test_texts_of_sizes_decide_nothing() -> None:
    def model(x: Tensor) -> Tensor:
        return x * len(f"{x.shape[0]}")

    refuses(model, vectors(4)[0], (dyn(0),))


# ---- sizes that are data


def selections(x: Tensor) -> tuple[Any, ...]:
    m = x[:, 0] > 0
    y = x[m]
    return y, x[x > 0], x[m] * 2 - y, y.sum(0), y.shape[0], torch.masked_select(x, x < 0), y.softmax(0)


def places(x: Tensor) -> tuple[Any, ...]:
    i, j = (x > 0).nonzero(as_tuple=True)
    k = torch.where(x[:, 0] > 0)[0]
    return i, j, x[i, j], k, x[k], x.nonzero(), torch.argwhere(x < 0)


def distinct(x: Tensor) -> tuple[Any, ...]:
    ids = x.flatten().abs().long()
    values, inverse, counts = torch.unique(ids, return_inverse=True, return_counts=True)
    return values, values[inverse], counts


def writes(x: Tensor) -> tuple[Any, ...]:
    y, m = x.clone(), x[:, 0] > 0
    y[y > 1] = 1.0
    y[m] = y[m] * 10
    y[m, 1] += 2
    y[~m] = torch.tensor([1.0, 2.0, 3.0])
    return (y,)


def counted(x: Tensor) -> tuple[Any, ...]:
    n = int((x > 0).sum())
    head, tail = torch.split(x.flatten(), [n, x.numel() - n])
    return torch.arange(n), torch.zeros(n, 3), torch.ones(n, n).triu(), head, tail, torch.eye(n), x.flatten()[-n:]


def repeated(x: Tensor) -> tuple[Any, ...]:
    counts = (x > 0).sum(1)
    return x.repeat_interleave(counts, dim=0), torch.repeat_interleave(counts)


@row(59)
@pytest.mark.parametrize("model", [selections, places, distinct, writes, counted, repeated])
def test_data_dependent_sizes(model: Callable[..., Any]) -> None:
    inputs = [*matrices(5, 0, 1, 3), (torch.ones(2, 3),), (-torch.ones(2, 3),)]
    agree(model, inputs, (dyn(0),), paths=1)


@row(59)
def test_branches_and_loops_over_selections() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        index = (x > 0).nonzero()[:, 0]
        if index.numel() == 0:
            return x.sum() - 1, 0
        total = torch.zeros(())
        for i in index.tolist():
            total = total * 0.5 + x[i] * i
        for value in x[:2].tolist():
            if value < 0:
                total = total + value
        return total, len(index)

    agree(model, vectors(5, 0, 1, 3, 8), (dyn(0),), paths=3)


@row(59, 20)
def test_a_selection_shrinks_in_a_loop() -> None:
    def model(x: Tensor) -> Tensor:
        order = x.argsort(descending=True)
        kept = torch.zeros(())
        while order.numel() > 0:
            i = order[0]
            kept = kept * 0.5 + x[i]
            order = order[(x[order] - x[i]).abs() > 0.4]
        return kept

    agree(model, vectors(6, 0, 1, 2, 9), (dyn(0),), paths=4)


# ---- what fixes a size


@dy2st.not_to_static
def opaque(x: Tensor) -> float:
    if x.shape[0] > 3:  # a branch that dy2st does not convert
        return 2.0
    return 1.0


@dy2st.not_to_static
def unrolled(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for i in range(x.shape[0]):  # a loop that dy2st does not convert
        total = total + x[i] * i
    return total


def narrowing(x: Tensor) -> Tensor:
    return x * opaque(x)


def fixing(x: Tensor) -> Tensor:
    return x + unrolled(x)


def line_of(text: str) -> int:
    """The line of this file that has ``text`` first."""
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


CASES = [
    (narrowing, "# a branch that dy2st", "x.shape[0] > 3"),
    (fixing, "# a loop that dy2st", "x.shape[0] == 5"),
]


@row(48)
@pytest.mark.parametrize("shapes", [({0: Dim("n")},), (dyn(0),)])
@pytest.mark.parametrize(("model", "text", "fixed"), CASES)
def test_a_fixed_size_is_refused_at_its_line(model: Any, text: str, fixed: str, shapes: Any) -> None:
    error = refuses(model, vectors(5)[0], shapes)
    assert isinstance(error, SpecializedError)
    assert error.location is not None
    assert error.location.line == line_of(text)
    assert fixed in error.what


@row(48)
@pytest.mark.parametrize("shapes", [({0: Dim("n")},), (dyn(0),)])
@pytest.mark.parametrize(("model", "text", "fixed"), CASES)
def test_a_size_is_fixed_where_the_user_allows_it(model: Any, text: str, fixed: str, shapes: Any) -> None:
    line, (x,) = line_of(text), vectors(5)[0]
    for entry in (line, f"{Path(__file__).name}:{line}"):
        written = dy2st.onnx.export(copy.copy(model), (x,), dynamic_shapes=shapes, allow_specialize=[entry])
        found = json.loads(written.model.metadata_props["dy2st.specialized"])
        assert found == [{"line": f"{Path(__file__).name}:{line}", "fixed": fixed}]
    program = dy2st.export(model, (x,), dynamic_shapes=shapes, allow_specialize=[line])
    torch.testing.assert_close(program.module()(x), model(x))
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(x[:2])


@row(48)
def test_a_line_that_fixes_nothing_is_a_usage_error() -> None:
    (x,) = vectors(5)[0]
    with pytest.raises(UsageError, match="nothing is specialised at line 1"):
        dy2st.export(split_first, (x,), dynamic_shapes=(dyn(0),), allow_specialize=[1])
    with pytest.raises(UsageError, match="is no line"):
        dy2st.export(split_first, (x,), allow_specialize=["here"])


@row(48)
def test_one_tensor_given_twice_is_two_arguments() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return a * 2 - b

    (x,), (y,) = vectors(3, 3)
    agree(model, [(x, x), (x, y)], paths=1)


@row(48)
def test_sizes_of_one_name_are_equal_and_others_may_not_be() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return a + b

    n = Dim("n")
    a, b = vectors(5)[0][0], vectors(5, seed=1)[0][0]
    program = dy2st.export(model, (a, b), dynamic_shapes=({0: n}, {0: n}))
    torch.testing.assert_close(program.module()(a[:1], b[:1]), a[:1] + b[:1])
    error = refuses(model, (a, b), ({0: n}, {0: Dim("m")}))
    assert isinstance(error, SpecializedError)


@row(48)
def test_arms_of_one_size_that_is_computed() -> None:
    """What the size demands is tested behind the branch, not while its results are made."""
    kernel = torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))

    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:  # noqa: SIM108 - as users write it
            y = F.conv1d(x, kernel)
        else:
            y = F.conv1d(x, kernel, stride=1) * 2
        return y

    inputs = [(torch.ones(2, 3, 8),), (-torch.ones(2, 3, 6),), (torch.ones(2, 3, 3),)]
    for dims in ({2: Dim("length")}, {2: Dim.DYNAMIC}, {0: Dim("batch"), 2: Dim("length")}):
        agree(model, inputs, {"x": dims})
    program = dy2st.export(model, inputs[0], dynamic_shapes={"x": {2: Dim("length")}})
    with pytest.raises(RuntimeError):
        program.module()(torch.ones(2, 3, 2))


@row(48)
def test_a_pool_along_a_size_that_a_loop_has_changed() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        means = []
        while x.shape[-1] >= 4:
            x, _ = F.max_pool1d(x, 2, return_indices=True) if x.mean() > 9 else (F.max_pool1d(x, 2), 0)
            means.append(x.mean())
        return torch.stack(means), F.max_pool1d(x, 2, stride=1, padding=1)

    generator = torch.Generator().manual_seed(0)
    inputs = [(torch.rand(2, 3, length, generator=generator),) for length in (12, 9, 16)]
    agree(model, inputs, {"x": dyn(2)}, whole=False)
