"""A model and a loss as one module, which is what a training step captures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from dy2st.calls.call_conversion import followed
from dy2st.errors import UsageError
from dy2st.operators.export_session import current

MODEL = "model"


class StepModule(torch.nn.Module):
    """``loss(model(*args, **kwargs), *targets)``, of all these in one row.

    ``names`` are those of the model's parameters, and of the loss's behind its first.
    """

    def __init__(
        self, model: torch.nn.Module, loss: Callable[..., Any], args: int, keywords: Sequence[str], targets: int
    ) -> None:
        super().__init__()
        self.model, self.loss = model, loss
        self.count, self.keywords = args, tuple(keywords)
        # The modules in it keep the modes that they have.
        self.training = model.training
        self.names = _unique([*_parameters(model.forward, args), *keywords, *_parameters(loss, 1 + targets)[1:]])

    def forward_of(self) -> Callable[..., Any]:
        """``forward`` as a function of the module and of parameters with ``names``."""

        def forward(module: StepModule, *values: Any) -> torch.Tensor:
            return StepModule.forward(module, *values)

        parameters = [
            inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in ("module", *self.names)
        ]
        forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return forward

    def forward(self, *values: Any) -> torch.Tensor:
        """The loss, a 0-d tensor of floats."""
        capture = current().capture
        assert capture is not None
        call: Any = followed
        end = self.count + len(self.keywords)
        keywords = dict(zip(self.keywords, values[self.count : end], strict=True))
        output = call(capture, self.model)(*values[: self.count], **keywords)
        found = call(capture, self.loss)(output, *values[end:])
        if not isinstance(found, torch.Tensor) or found.dim() or not found.dtype.is_floating_point:
            told = (
                f"a tensor of {found.dtype} and shape {list(found.shape)}" if isinstance(found, torch.Tensor) else found
            )
            raise UsageError(f"the loss gives {told}", hint="return a 0-d tensor of floats: a sum or a mean")
        return found


def _parameters(function: Callable[..., Any], count: int) -> list[str]:
    """The names of the first parameters of a function; numbered where it has none for them."""
    call = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return [positional[i] if i < len(positional) else f"arg_{i}" for i in range(count)]


def _unique(names: Sequence[str]) -> list[str]:
    return list(_apart(names))


def _apart(names: Sequence[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        made = name
        while made in taken:
            made += "_"
        taken.add(made)
        yield made
