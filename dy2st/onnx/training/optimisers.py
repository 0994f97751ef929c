"""What an optimiser of torch does in one step, as functions of tensors.

Source: ``torch.optim.SGD``, ``Adam`` and ``AdamW`` of torch 2.13, whose arithmetic and order of operations these have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from dy2st.errors import UsageError

State = dict[str, torch.Tensor]


class Update(ABC):
    """The step of one parameter, with the options of its group."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = {name: _number(value) for name, value in options.items() if name not in ("params", "lr")}

    @abstractmethod
    def state(self, parameter: torch.Tensor, kept: Mapping[str, Any]) -> State:
        """The state to begin with: what the optimiser has ``kept`` of the parameter, or what stands for nothing."""

    @abstractmethod
    def step(
        self, parameter: torch.Tensor, gradient: torch.Tensor, state: State, rate: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        """The parameter and its state after a step; ``rate`` is the learning rate (0-d float32)."""

    def _directed(self, gradient: torch.Tensor) -> torch.Tensor:
        return -gradient if self.options.get("maximize") else gradient


class SGD(Update):
    """``torch.optim.SGD``."""

    def state(self, parameter: torch.Tensor, kept: Mapping[str, Any]) -> State:
        """The momentum, and with dampening whether there is one: the first gradient is not dampened."""
        if not self.options["momentum"]:
            return {}
        found = kept.get("momentum_buffer")
        made = {"momentum_buffer": torch.zeros_like(parameter) if found is None else found.detach().clone()}
        if self.options["dampening"]:
            made["momentum_started"] = torch.tensor(found is not None)
        return made

    def step(
        self, parameter: torch.Tensor, gradient: torch.Tensor, state: State, rate: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        """With weight decay, momentum, dampening and Nesterov's form of it."""
        gradient = self._directed(gradient)
        if self.options["weight_decay"]:
            gradient = gradient + parameter * self.options["weight_decay"]
        momentum, following = self.options["momentum"], {}
        if momentum:
            buffer = state["momentum_buffer"] * momentum + gradient * (1 - self.options["dampening"])
            if self.options["dampening"]:
                buffer = torch.where(state["momentum_started"], buffer, gradient)
                following["momentum_started"] = torch.full([], True, dtype=torch.bool)
            following["momentum_buffer"] = buffer
            gradient = gradient + buffer * momentum if self.options["nesterov"] else buffer
        return parameter - gradient * rate.to(parameter.dtype), following


class Adam(Update):
    """``torch.optim.Adam``; with ``decoupled_weight_decay`` it is ``AdamW``."""

    def state(self, parameter: torch.Tensor, kept: Mapping[str, Any]) -> State:
        """The number of steps (0-d float32), and the averages of the gradient and of its square."""
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if self.options["amsgrad"] else [])]
        made = {"step": torch.as_tensor(kept.get("step", 0.0), dtype=torch.float32).detach().clone()}
        for name in names:
            made[name] = kept[name].detach().clone() if name in kept else torch.zeros_like(parameter)
        return made

    def step(
        self, parameter: torch.Tensor, gradient: torch.Tensor, state: State, rate: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        """With weight decay of either kind, and AMSGrad."""
        first, second = self.options["betas"]
        decay, decoupled = self.options["weight_decay"], self.options["decoupled_weight_decay"]
        gradient = self._directed(gradient)
        if decay and decoupled:
            parameter = parameter * (1 - rate.double() * decay).to(parameter.dtype)
        elif decay:
            gradient = gradient + parameter * decay
        count = state["step"] + 1
        average = state["exp_avg"] + (gradient - state["exp_avg"]) * (1 - first)
        square = state["exp_avg_sq"] * second + gradient * gradient * (1 - second)
        following = {"step": count, "exp_avg": average, "exp_avg_sq": square}
        # Eager corrects with numbers of Python, which are of double precision.
        exact = count.double()
        size = (rate.double() / (1 - torch.pow(first, exact))).to(parameter.dtype)
        scale = torch.sqrt(1 - torch.pow(second, exact)).to(parameter.dtype)
        if self.options["amsgrad"]:
            square = following["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], square)
        return parameter - average / (square.sqrt() / scale + self.options["eps"]) * size, following


KINDS: dict[type[torch.optim.Optimizer], type[Update]] = {
    torch.optim.SGD: SGD,
    torch.optim.Adam: Adam,
    torch.optim.AdamW: Adam,
}


def _number(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.item()
    return tuple(map(_number, value)) if isinstance(value, (list, tuple)) else value


def require_known(optimizer: torch.optim.Optimizer) -> type[Update]:
    """The rule of an optimiser.

    Raises:
        UsageError: there is none, or it does more than its class.
    """
    kind = KINDS.get(type(optimizer))
    if kind is None:
        raise UsageError(
            f"the optimiser is of the class {type(optimizer).__name__}, whose step dy2st can't write",
            hint="use torch.optim.SGD, Adam or AdamW; without an optimiser the file gives the gradients",
        )
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise UsageError("the optimiser has hooks, which a file can't call", hint="remove them before the export")
    return kind
