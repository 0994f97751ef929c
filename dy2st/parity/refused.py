"""Everything that is refused of a model, on the inputs that eager accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dy2st.capture.all_refusals import collected
from dy2st.parity.checking import eager_references
from dy2st.parity.examples import example_for
from dy2st.source.torch_made import in_python

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.errors import Dy2stError
    from dy2st.parity.stages import Reference


def refusals(model: Any, inputs: Any, *, dynamic_shapes: Any = None) -> list[Dy2stError]:
    """Everything in ``model`` that can't be staged, in the order of file and line; nothing is exported.

    ``dy2st.export`` raises the first that it meets. Here what is refused is left out and the rest is looked at, up to
    fifty times. What depends on a value that was left out can't be judged, so fixing these may show more.

    Args:
        model: an ``nn.Module``, a function, a bound method or a callable object.
        inputs: an iterable of sets, or a dict of named sets, as for ``dy2st.check``.
        dynamic_shapes: as for ``torch.export.export``; without it, the sizes that differ between sets are dynamic.

    Raises:
        ExampleInputsError: ``inputs`` has another form, or its sets can't share one program.
        UnusableInputError: there is no set that eager accepts.
    """
    model = in_python(model)
    return refusals_for(model, eager_references(model, inputs), dynamic_shapes)


def refusals_for(model: Any, references: Sequence[Reference], dynamic_shapes: Any = None) -> list[Dy2stError]:
    """As ``refusals``, for sets that eager has run on."""
    example, dynamic_shapes = example_for(model, references, dynamic_shapes)
    return collected(model, example.args, example.kwargs, dynamic_shapes=dynamic_shapes)
