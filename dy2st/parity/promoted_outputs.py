"""Results of which eager's dtype depends on the path: a program has the highest one on all paths, and its export warns.

So a value of a lower kind, or one that has no elements, is compared in the dtype that the program was exported to
return. Of a result that no warning is about, another dtype is a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from dy2st.capture.diagnosis import PROMOTED
from dy2st.embedded.file_outputs import steps

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.outputs import Output


def promoted_dtypes(program: ExportedProgram | None) -> frozenset[torch.dtype]:
    """The dtypes that a program's results have in place of another one on some path."""
    return frozenset() if program is None else frozenset(program.graph_module.meta.get(PROMOTED, ()))


def promoted_output(output: Output, dtype: torch.dtype | None, known: Collection[torch.dtype]) -> Output:
    """What eager returned, in the dtype of the program's result, if the export has warned of that."""
    own = output.tensor.dtype
    if dtype is None or own is dtype or dtype not in known or output.is_text:
        return output
    cast = output.tensor.to(dtype)
    higher = not own.is_floating_point and dtype.is_floating_point and torch.equal(cast.to(own), output.tensor)
    return replace(output, tensor=cast) if higher or not cast.numel() else output


def promoted_alike(
    expected: Sequence[Output], actual: Sequence[Output], known: Collection[torch.dtype]
) -> Sequence[Output]:
    """Eager's outputs, each in the dtype of what it is compared with: by place where that is known, else in order."""
    if not known:
        return expected
    if all(output.place for output in actual):
        placed = {steps(output.place): output.tensor.dtype for output in actual}
        dtypes = [placed.get(steps(want.name), want.tensor.dtype) for want in expected]
    else:
        dtypes = [got.tensor.dtype for got in actual]
    if len(dtypes) != len(expected):
        return expected
    return [promoted_output(want, dtype, known) for want, dtype in zip(expected, dtypes, strict=True)]
