"""Which of the sets a model is captured with, and which of its sizes are dynamic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dy2st.capture.carried_inputs import with_named_keywords
from dy2st.errors import ExampleInputsError, UnusableInputError
from dy2st.parity.dynamic import best_example, inferred_dynamic_shapes, require_dynamic_shapes
from dy2st.parity.inputs import InputSet, describe
from dy2st.parity.raising import is_meant
from dy2st.parity.stages import NOTHING
from dy2st.sizes.call_shapes import shapes_of_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.parity.stages import Reference


def nothing_usable(model: Any, references: Sequence[Reference]) -> UnusableInputError:
    """The error where eager accepts no set."""
    first = references[0]
    return UnusableInputError(f"input {first.inputs.name} ({describe(model, first.inputs)}): {first.problem}")


def example_for(model: Any, references: Sequence[Reference], dynamic_shapes: Any) -> tuple[InputSet, Any]:
    """The set to capture with, and the dynamic shapes: those given, or the sizes that differ between the usable sets.

    Raises:
        UnusableInputError: there is no set that eager accepts, or rejects with a ``raise`` of the user's.
        ExampleInputsError: the sets can't share one program, or the shapes don't fit them.
    """
    meant = [reference.inputs for reference in references if is_meant(reference)]
    usable = [reference.inputs for reference in references if not reference.problem] or meant
    if not usable:
        raise nothing_usable(model, references)
    if dynamic_shapes is None:
        try:
            nothing = [reference.inputs for reference in references if reference.problem == NOTHING]
            dynamic_shapes = inferred_dynamic_shapes(model, [*usable, *meant, *nothing])
        except ExampleInputsError:
            if not meant:
                raise
            dynamic_shapes = inferred_dynamic_shapes(model, usable)
    example = best_example(usable)
    dynamic_shapes = shapes_of_call(model, example.args, example.kwargs, dynamic_shapes)
    example = example.copied()
    call = model.forward if isinstance(model, torch.nn.Module) else model
    dynamic_shapes = with_named_keywords(call, example.args, example.kwargs, dynamic_shapes)[1]
    require_dynamic_shapes(model, example, dynamic_shapes)
    return example, dynamic_shapes
