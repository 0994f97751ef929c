"""Translations that a user has for operators of their own, or in place of ours.

Source: ``custom_translation_table`` of ``torch.onnx.export``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import onnxscript
import torch
from torch._library.custom_ops import CustomOpDef

from dy2st.errors import UsageError
from dy2st.values.describing import describe

Translation = TypeVar("Translation", bound=Callable[..., Any])

_REGISTERED: dict[Any, Callable[..., Any]] = {}


def translate(operator: Any) -> Callable[[Translation], Translation]:
    """Register the decorated function as the ONNX translation of an operator, for every export of this process.

    ::

        @dy2st.onnx.translate(half)
        def _(x):
            return opset18.Div(x, 2.0)

    The function takes what the operator takes: tensors as values of ONNX, and numbers, texts and lists as they are. It
    returns what the operator returns, made with operators of ``onnxscript``. A node of a domain of its own needs a
    kernel where the file runs: see ``dy2st.onnx.register_kernels``. A translation is checked as everything else is.

    Args:
        operator: what ``torch.library.custom_op`` gave, ``torch.ops.shop.half`` if it has one overload, or
            ``torch.ops.shop.half.default``.

    Raises:
        UsageError: it is no operator, or one of several overloads.
    """
    overload = overload_of(operator)

    def register(function: Translation) -> Translation:
        require_results(function)
        _REGISTERED[overload] = function
        return function

    return register


def custom_table(given: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """The translations that are registered, and before them those that an export is given.

    Raises:
        UsageError: a key is no operator, or what stands for it can't be called.
    """
    table: dict[Any, Any] = dict(_REGISTERED)
    for operator, function in (given or {}).items():
        require_results(function)
        if not callable(function):
            raise UsageError(
                f"custom_translation_table has {describe(function)} for {operator}", hint="one function for an operator"
            )
        table[overload_of(operator)] = function
    return table


def require_results(function: Any) -> None:
    """Accept a translation of which torch's exporter can tell what it returns.

    Raises:
        UsageError: it is an ``onnxscript.script`` without a return annotation, which has no results to the exporter.
    """
    if isinstance(function, onnxscript.OnnxFunction) and "return" not in function.function.__annotations__:
        raise UsageError(
            f"the onnxscript.script {function.name} does not say what it returns",
            hint=f"def {function.name}(...) -> onnxscript.FLOAT",
        )


def overload_of(operator: Any) -> Any:
    """The operator as a program has it: one overload.

    Raises:
        UsageError: it is no operator, or one of several overloads.
    """
    if isinstance(operator, CustomOpDef):
        return operator._opoverload
    if isinstance(operator, torch._ops.OpOverloadPacket):
        names = operator.overloads()
        if len(names) == 1:
            return getattr(operator, names[0])
        raise UsageError(
            f"{operator} has several overloads: {', '.join(names)}",
            hint=f"one of them: torch.ops.{operator}.{names[0]}",
        )
    if not callable(operator) or isinstance(operator, type):
        raise UsageError(
            f"a translation is for an operator, not {describe(operator)}", hint="torch.ops.shop.half.default"
        )
    return operator
