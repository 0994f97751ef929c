"""Probabilities near zero: their logarithm, their order, and whether there are any, as eager has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import dy2st
import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Callable

inf = float("inf")
SETS = [
    (torch.tensor([-60.0, -30.0, -20.0, -18.5, -17.0, 0.0, 3.0, 17.0, 30.0, 85.0]),),
    (torch.tensor([-inf, inf, float("nan"), -0.0, 1e-30, -100.0, 100.0, -40.0, -35.0, -36.0]),),
]
# Relative errors alone, but for what is no normal number.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-38}

FORMS: dict[str, Callable[[Tensor], Any]] = {
    "logsigmoid": functional.logsigmoid,
    "log of sigmoid": lambda x: torch.log(torch.sigmoid(x.clamp(min=-85))),
    "log of a product": lambda x: torch.log(torch.sigmoid(x.clamp(min=-40)) * torch.sigmoid(x.clamp(min=-40))),
    "logit of sigmoid": lambda x: torch.logit(torch.sigmoid(x[:4])),
    "sigmoid": lambda x: torch.sigmoid(x.clamp(min=-85)),
    "quotient": lambda x: 1 / torch.sigmoid(x.clamp(min=-80)),
    "order": lambda x: torch.sigmoid(x[:4].nan_to_num(-25.0, -19.0, -45.0)).argsort(),
    "some": lambda x: (torch.sigmoid(x.clamp(min=-85)) > 0).sum(),
    "in rows": lambda x: torch.log(torch.sigmoid(x.clamp(min=-85)).reshape(2, 5).T[1]),
    "with logits": lambda x: functional.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3), reduction="none"),
}


@pytest.mark.parametrize("name", FORMS)
def test_small_values(name: str) -> None:
    report = dy2st.check(FORMS[name], SETS, **TOLERANCE)
    assert report.ok, str(report)


def loss(x: Tensor, **options: Any) -> Tensor:
    target = torch.linspace(0, 1, 10)
    return functional.binary_cross_entropy_with_logits(x, target, **options)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_losses(reduction: str, dtype: torch.dtype) -> None:
    weight = torch.linspace(0.5, 2, 10, dtype=dtype)

    def model(x: Tensor) -> tuple[Tensor, ...]:
        x = x.clamp(-60, 60)
        target = torch.linspace(0, 1, 10, dtype=dtype)
        call = functional.binary_cross_entropy_with_logits
        return (
            call(x, target, reduction=reduction),
            call(x, target, weight, reduction=reduction, pos_weight=weight * 2),
            functional.logsigmoid(x),
        )

    report = dy2st.check(model, [(SETS[0][0].to(dtype),), (-SETS[0][0].to(dtype),)])
    assert report.ok, str(report)


def test_a_loss_of_any_number_of_samples() -> None:
    n = torch.export.Dim("n", min=0)

    def model(x: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(x, torch.ones_like(x))

    report = dy2st.check(model, [(torch.tensor([-60.0, 4.0]),), (torch.ones(5),)], dynamic_shapes=({0: n},))
    assert report.ok, str(report)


def kinds(model: Callable[..., Any], *args: Tensor) -> list[str]:
    proto = dy2st.onnx.export(model, args).model_proto
    found = []
    graphs: list[onnx.GraphProto] = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            found.append(node.op_type)
            graphs += [each.g for each in node.attribute if each.type == onnx.AttributeProto.GRAPH]
    return found


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x * torch.sigmoid(x),
        lambda x: torch.sigmoid(x[0]) * x[1] + (1 - torch.sigmoid(x[0])) * torch.tanh(x[2]),
        lambda x: (torch.sigmoid(x) @ x.T).sum(0),
    ],
)
def test_gates_are_left_to_the_kernel(model: Callable[..., Any]) -> None:
    found = kinds(model, torch.ones(3, 4))
    assert "Sigmoid" in found
    assert "Exp" not in found


def test_in_a_loop_and_a_branch() -> None:
    def model(x: Tensor) -> Tensor:
        total = x * 0
        while total.sum() > -300:
            p = torch.sigmoid(x.clamp(-40, 40))
            total = total + p.log() if p.min() < 1e-8 else total - 50
            x = x - 1
        return total

    report = dy2st.check(model, [(torch.tensor([-30.0, 2.0]),), (torch.tensor([-10.0, 2.0]),)], **TOLERANCE)
    assert report.ok, str(report)
