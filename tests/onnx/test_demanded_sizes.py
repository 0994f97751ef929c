"""What eager's operators demand of a dynamic size, the file demands as well: it raises for the same sizes."""

from collections.abc import Callable

import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as users do
from torch import Tensor
from torch.export import Dim

import dy2st


def checked(x: Tensor) -> Tensor:
    torch._check(x.shape[0] > 3)
    return x + 1


def checked_remainder(x: Tensor) -> Tensor:
    torch._check_value(x.shape[0] % 2 == 0, lambda: "an odd number of rows")
    return x + 1


def in_an_arm(x: Tensor) -> Tensor:
    if x[:, 0].sum() > 0:
        return x.unfold(0, 3, 1).sum(0)
    torch._check(x.shape[0] < 5)
    return x.sum(0)[:, None].expand(5, 3)


def in_a_loop(x: Tensor) -> Tensor:
    total = x.sum(0)
    while total.sum() < 20:
        total = total + F.glu(x.abs() + 1, 0).sum(0)
    return total


def of_data(x: Tensor) -> Tensor:
    rows = x[x[:, 0] > 0]
    return rows.unfold(0, 2, 1).sum()


def unpacked_rows(x: Tensor) -> Tensor:
    a, b, c = x[:3]
    return a + b * c


def unpacked(x: Tensor) -> Tensor:
    (a, b, c), total = x, x.sum(0)
    return a + b * c - total


def unpacked_call(x: Tensor) -> Tensor:
    a, b, c = x[1:].unbind(0)
    if a.sum() > 0:
        b, c = torch.unbind(x[2:])
    return a - b + c


MODELS: list[Callable[[Tensor], Tensor]] = [
    checked,
    checked_remainder,
    in_an_arm,
    in_a_loop,
    of_data,
    unpacked_rows,
    unpacked,
    unpacked_call,
    lambda x: x.unfold(0, 3, 1),
    lambda x: x.unfold(0, 2, 2).sum(0),
    lambda x: torch.hsplit(x.T, 2)[1],
    lambda x: F.glu(x, 0),
    lambda x: torch.stack([x, torch.ones(4, 5)]),
    lambda x: F.max_pool1d(x.T[None], 3),
    lambda x: F.max_pool2d(x[None], 2),
    lambda x: F.avg_pool1d(x.T[None], 3),
    lambda x: F.avg_pool2d(x[None], 3, 2),
    lambda x: F.lp_pool1d(x.T[None], 2, 3),
    lambda x: F.unfold(x[None, None], (3, 2)),
    lambda x: F.pad(x.T[None], (2, 2), mode="circular"),
    lambda x: F.batch_norm(x, None, None, training=True),
    lambda x: x.repeat_interleave(torch.tensor([1, 2, 0, 1]), 0),
    lambda x: x[3] + x[-2],
    lambda x: x.narrow(0, 1, 2) + x.select(0, 2),
    lambda x: x.reshape(2, -1),
    lambda x: x.unflatten(0, (2, -1)),
    lambda x: x.topk(3, 0).values,
    lambda x: x[:, 0].expand(4),
    lambda x: F.conv1d(x.T[None], torch.ones(2, 5, 3)),
]


def outcome(run: Callable[[], Tensor]) -> Tensor | None:
    """What is computed, or None where that raises."""
    try:
        return run()
    except Exception:  # noqa: BLE001 - each runtime has its own
        return None


@pytest.mark.parametrize("model", MODELS)
def test_the_file_raises_where_eager_does(model: Callable[[Tensor], Tensor]) -> None:
    program = dy2st.onnx.export(model, (torch.ones(4, 5),), dynamic_shapes=({0: Dim("n")},))
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    name = session.get_inputs()[0].name
    outcomes = set()
    for rows in range(1, 8):
        for x in (torch.randn(rows, 5, generator=torch.Generator().manual_seed(rows)), -torch.ones(rows, 5)):
            expected = outcome(lambda x=x: model(x))
            found = outcome(lambda x=x: torch.from_numpy(session.run(None, {name: x.numpy()})[0]))
            assert (found is None) == (expected is None), f"{rows} rows"
            if expected is not None:
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            outcomes.add(expected is None)
    assert outcomes == {True, False}


@pytest.mark.parametrize("counts", [[2], [0, 3, 1], [1, 1, 1, 1]])
def test_elements_are_repeated_by_one_count_or_by_one_each(counts: list[int]) -> None:
    def repeated(x: Tensor, k: Tensor) -> tuple[Tensor, ...]:
        return x.repeat_interleave(k, 0), x.repeat_interleave(torch.tensor([2]), 0), x[:, 0].repeat_interleave(k)

    x, k = torch.randn(len(counts) if len(counts) > 1 else 4, 2), torch.tensor(counts)
    for example in (torch.tensor([2, 1]), torch.tensor([3])):
        shapes = {"x": {0: "rows"}, "k": {0: "counts"}}
        report = dy2st.check(repeated, [(torch.randn(2, 2), example), (x, k)], dynamic_shapes=shapes)
        assert report.outcome == "equal", str(report)
    static = dy2st.to_static(repeated)
    for found, expected in zip(static(x, k), repeated(x, k), strict=True):
        assert torch.equal(found, expected)
