"""What eager's operators demand of a dynamic size, the file demands as well: it raises for the same sizes."""

from collections.abc import Callable

import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as users do
from torch import Tensor
from torch.export import Dim

import dy2st
from dy2st.sizes.policy import FAILING


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
        total = total + F.glu(x.abs() + 1, 0).sum(0) + 1
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
    lambda x: x.narrow(0, 1, 2) + x.select(0, 2),
    lambda x: F.binary_cross_entropy(x[x[:, 0] > 0].sigmoid(), torch.ones(3, 5)),
    lambda x: F.binary_cross_entropy_with_logits(x[x[:, 0] > 0], x[x[:, 0] > 0][1:2], reduction="sum"),
]


# What ONNX has for these fails for the same sizes: the file has no test of them.
FAILS: dict[str, Callable[[Tensor], Tensor]] = {
    "__getitem__": lambda x: x[3] + x[-2],
    "expand": lambda x: x[:, 0].expand(4),
    "expand_as": lambda x: x[:, 0].expand_as(torch.zeros(4)),
    "broadcast_to": lambda x: x.broadcast_to(4, 5),
    "reshape": lambda x: x.reshape(2, -1),
    "view": lambda x: x.contiguous().view(2, -1),
    "unflatten": lambda x: x.unflatten(0, (2, -1)),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin(0),
    "aminmax": lambda x: torch.aminmax(x)[1],
    "argmax": lambda x: x.argmax(0),
    "argmin": lambda x: x.argmin(),
    "kthvalue": lambda x: x.kthvalue(2, 0).values,
    "topk": lambda x: x.topk(3, 0).values,
    "quantile": lambda x: x.quantile(0.5, 0),
    "take": lambda x: x.take(torch.tensor([7])),
    "conv1d": lambda x: F.conv1d(x.T[None], torch.ones(2, 5, 3)),
    "conv2d": lambda x: F.conv2d(x[None, None], torch.ones(2, 1, 3, 2)),
    "conv3d": lambda x: F.conv3d(x[None, None, None], torch.ones(2, 1, 1, 3, 2)),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x.T[None], torch.ones(5, 2, 3), padding=2),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x[None, None], torch.ones(1, 2, 3, 2), padding=(2, 0)),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x[None, None, None], torch.ones(1, 2, 1, 3, 2), padding=(0, 2, 0)),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x.T[None], 1),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x[None], 1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(1, -1, 1, 5), 2),
    "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(1, -1, 1, 5), 2),
    "linalg_cross": lambda x: torch.linalg.cross(x[:3].T, torch.ones(5, 3)),
    "linalg_vector_norm": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=0),
    "copy_": lambda x: torch.zeros(4, 5).copy_(x),
    "fft_rfft": lambda x: torch.fft.rfft(x, dim=0).abs(),
}


def outcome(run: Callable[[], Tensor]) -> Tensor | None:
    """What is computed, or None where that raises."""
    try:
        return run()
    except Exception:  # noqa: BLE001 - each runtime has its own
        return None


def test_each_operator_that_fails_by_itself_is_tried() -> None:
    assert FAILS.keys() == FAILING


@pytest.mark.parametrize("model", [*MODELS, *FAILS.values()])
def test_the_file_raises_where_eager_does(model: Callable[[Tensor], Tensor]) -> None:
    program = dy2st.onnx.export(model, (torch.ones(4, 5),), dynamic_shapes=({0: Dim("n")},))
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    name = session.get_inputs()[0].name
    outcomes = set()
    for rows in range(8):
        for x in (torch.randn(rows, 5, generator=torch.Generator().manual_seed(rows)), -torch.ones(rows, 5)):
            expected = outcome(lambda x=x: model(x))
            found = outcome(lambda x=x: torch.from_numpy(session.run(None, {name: x.numpy()})[0]))
            assert (found is None) == (expected is None), f"{rows} rows"
            if expected is not None:
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            outcomes.add(expected is None)
    assert outcomes == {True, False}


@pytest.mark.slow_but_for("counts2")
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
