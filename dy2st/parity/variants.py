"""The same model in other ways: onnxruntime's levels of optimisation, other opsets and providers, other runtimes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.errors import UsageError
from dy2st.onnx.exporting import export as export_onnx
from dy2st.parity.other_runtimes import OtherSession
from dy2st.parity.stages import OnnxSession

if TYPE_CHECKING:
    from torch.export import ExportedProgram

# The levels that are not the default.
LEVELS = {"no optimisation": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}


@dataclass(frozen=True)
class Variant:
    """One more stage: its name, and how its session is made."""

    name: str
    session: Callable[[], OnnxSession]


def variants(
    file: Path,
    program: ExportedProgram | None,
    *,
    levels: bool = False,
    opsets: Iterable[int] = (),
    providers: Sequence[str] = (),
    runtimes: Sequence[str] = (),
    dynamic_shapes: Any = None,
    make: Callable[..., OnnxSession] = OnnxSession,
) -> list[Variant]:
    """More stages for a file and the program that it was made from; files of other opsets go beside it.

    Args:
        file: the ONNX file.
        program: what ``dy2st.export`` gave; None for a file of somebody else, which has one opset.
        levels: also run each level of optimisation.
        opsets: also write and run files of these opsets.
        providers: also run these execution providers (``"CUDA"`` or ``"CUDAExecutionProvider"``).
        runtimes: also run these other runtimes (``"reference"``, ``"openvino"``), which have to be installed.
        dynamic_shapes: as for the file.
        make: makes the sessions.

    Raises:
        UsageError: onnxruntime has no such provider here.
    """
    found = []
    if levels:
        found += [Variant(name, partial(make, file, level=level)) for name, level in LEVELS.items()]
    for opset in opsets:
        assert program is not None, "a file that is given has its own opset"
        made = partial(_of_opset, file, program, opset, dynamic_shapes, make)
        found.append(Variant(f"opset {opset}", made))
    for given in providers:
        found.append(Variant(given, partial(make, file, provider=_available(given))))
    found += [Variant(name, partial(OtherSession, file, name)) for name in runtimes]
    return found


def _of_opset(
    file: Path, program: ExportedProgram, opset: int, dynamic_shapes: Any, make: Callable[..., OnnxSession]
) -> OnnxSession:
    other = file.with_name(f"{file.stem}_opset{opset}.onnx")
    export_onnx(program, f=other, dynamic_shapes=dynamic_shapes, opset_version=opset)
    return make(other)


def _available(given: str) -> str:
    import onnxruntime

    there: list[str] = onnxruntime.get_available_providers()
    names = {name.removesuffix("ExecutionProvider").lower(): name for name in there}
    found = names.get(given.removesuffix("ExecutionProvider").lower())
    if found is None:
        raise UsageError(f"onnxruntime has no provider {given!r} here", hint=f"one of {', '.join(sorted(names))}")
    return found
