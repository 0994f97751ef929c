"""Functions that a package has in C, given tensors: they hand them on, or are refused where they ask for values."""

from __future__ import annotations

import pytest
import torch
from harness import agree
from torch import Tensor

import dy2st
from dy2st.errors import UnconvertedCallError
from dy2st.values.extensions import is_extension

core = pytest.importorskip("pydantic_core", reason="a package with functions in C is not installed: dy2st[dev]")
schema = core.core_schema
INPUTS = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),)]

TENSOR = core.SchemaValidator(schema.is_instance_schema(Tensor))
NUMBER = core.SchemaValidator(schema.float_schema())
# A number, if the tensor can be made one; else it stays a tensor.
EITHER = core.SchemaValidator(
    schema.union_schema([schema.float_schema(), schema.is_instance_schema(Tensor)], mode="left_to_right")
)


def test_which_functions_are_extensions() -> None:
    assert is_extension(core.to_json)
    assert is_extension(TENSOR.validate_python)
    for function in (len, [].append, torch.relu, torch.ones(1).numpy().sum, torch.ones(1).sum, "".join, agree, Tensor):
        assert not is_extension(function), function


def test_a_tensor_that_is_handed_on() -> None:
    def model(x: Tensor) -> Tensor:
        found = TENSOR.validate_python(x * 2)
        if found.sum() > 0:
            found = TENSOR.validate_python(found + 1)
        return found

    agree(model, INPUTS)


def test_a_text_of_a_tensor_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        return x * len(core.to_json({"a": x}, fallback=repr))

    with pytest.raises(UnconvertedCallError, match=r"to_json\(\).* asks a data-dependent tensor for its values"):
        dy2st.export(model, INPUTS[0])


@pytest.mark.parametrize("validator", [NUMBER, EITHER], ids=["number", "either"])
def test_a_number_of_a_tensor_is_refused_though_the_function_goes_on_without(validator: object) -> None:
    def model(x: Tensor) -> Tensor:
        found = validator.validate_python(x[0])  # type: ignore[attr-defined]
        return x * 2 if isinstance(found, float) else x * 3

    with pytest.raises(UnconvertedCallError, match="asks a data-dependent tensor for its values"):
        dy2st.export(model, INPUTS[0])
