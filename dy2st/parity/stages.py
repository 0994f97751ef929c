"""Running a model: eagerly, as an exported program, and as an ONNX file on onnxruntime."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dy2st.capture.carried_state import PREFIX
from dy2st.embedded.array_session import STATE
from dy2st.embedded.file_outputs import is_plain, pieces, told_outputs
from dy2st.embedded.session_kernels import session_options
from dy2st.errors import OnnxError
from dy2st.parity.gradient_mode import asks_for_gradients, gradients_as_asked
from dy2st.parity.inputs import InputSet, named_leaves
from dy2st.parity.outputs import Output, ResultKindError, flat_outputs, text_tensor, widened
from dy2st.parity.state import preserved
from dy2st.source.user_frames import is_own, user_location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CPU = "CPUExecutionProvider"
# Of a set on which eager returns None, or lists without elements.
NOTHING = "eager returns no tensor and no number: there is nothing to compare"
SEED = 0  # every run starts from it, so that dropout draws the same numbers eagerly and in the program


@dataclass(frozen=True)
class Reference:
    """What eager does with one set: its outputs, or why the set is unusable.

    ``raised`` is the user's line at which eager raises, if it does. ``raises`` says what it raises, where a guard of
    the program stands for that line, so that the others have to fail as well. ``seconds`` is what it took.
    """

    inputs: InputSet
    outputs: tuple[Output, ...] = ()
    problem: str = ""
    raised: tuple[str, int] | None = None
    raises: str = ""
    seconds: float = field(default=0.0, compare=False)


def eager_reference(model: Any, inputs: InputSet) -> Reference:
    """Run the model as it is: without gradients, in its own train or eval mode, its state put back afterwards."""
    begun = time.perf_counter()
    try:
        try:
            outputs = run_model(model, model, inputs)
        except RuntimeError as error:
            if not asks_for_gradients(model, error):
                raise
            outputs = run_model(model, model, inputs)
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises is the finding
        return failed_reference(inputs, error, begun)
    return judged(inputs, outputs, begun)


def failed_reference(inputs: InputSet, error: Exception, begun: float) -> Reference:
    """Eager raises on a set."""
    if isinstance(error, ResultKindError):  # it is we who can't compare what eager returns
        return Reference(inputs, problem=f"nothing can be compared: {error}", seconds=time.perf_counter() - begun)
    problem = f"eager itself raises {one_line(error)}"
    return Reference(inputs, problem=problem, raised=raised_at(error), seconds=time.perf_counter() - begun)


def judged(inputs: InputSet, outputs: Sequence[Output], begun: float) -> Reference:
    """What eager has returned on a set, and whether that can be compared."""
    if not outputs:
        return Reference(inputs, problem=NOTHING, seconds=time.perf_counter() - begun)
    values = [widened(output.tensor) for output in outputs]
    if any(value.numel() for value in values) and all(bool(value.isnan().all()) for value in values):
        return Reference(inputs, tuple(outputs), problem="all that eager returns is NaN: nothing would be compared")
    return Reference(inputs, tuple(outputs), seconds=time.perf_counter() - begun)


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """The user's innermost line in an exception's traceback."""
    location = user_location(error.__traceback__)
    return None if location is None else (location.filename, location.line)


def program_outputs(model: Any, module: Any, inputs: InputSet) -> list[Output]:
    """Run ``ExportedProgram.module()``; it may share the model's buffers, so both are put back."""
    return run_model(module, model, inputs)


def run_model(callee: Any, model: Any, inputs: InputSet, *, seed: int = SEED) -> list[Output]:
    """Run ``callee`` on a copy of the set, without gradients unless the model takes some; its state is put back."""
    given = inputs.copied()
    with gradients_as_asked(model), preserved(model, callee), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        outputs = flat_outputs(callee(*given.args, **given.kwargs))
        return [each.copied() for each in outputs]


def one_line(error: BaseException) -> str:
    """An exception as one line: its type, the first line of its text, and the user's line that raised it."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame.filename)]
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    kind = type(error).__name__
    # What has failed in another process tells its own type.
    named = [text] if kind.startswith("_") else [kind, text]
    return f"{': '.join(part for part in named if part)}{where}"


class EndlessRunError(Exception):
    """A run was stopped for its time."""


class OnnxSession:
    """An ONNX file on onnxruntime, fed by name; or a session that there is already.

    ``level`` names one of onnxruntime's levels of optimisation (``"ORT_DISABLE_ALL"``) in place of its default,
    ``provider`` what runs it (``"CUDAExecutionProvider"``). ``limit`` are the seconds that a run may take; None is no
    limit. A run is stopped between two nodes, those of bodies included.

    Raises:
        OnnxError: onnxruntime can't load the file.
    """

    limit: float | None = None

    def __init__(self, path: Any, *, level: str | None = None, provider: str = CPU) -> None:
        import onnxruntime

        is_session = isinstance(path, onnxruntime.InferenceSession)
        self._session = path if is_session else self._loaded(path, level, provider)
        self.input_names = [graph_input.name for graph_input in self._session.get_inputs()]
        self.output_names = [graph_output.name for graph_output in self._session.get_outputs()]
        metadata = self._session.get_modelmeta().custom_metadata_map
        self.state_names, self.following = state_names(metadata), state_outputs(metadata)
        self.told = told_outputs(metadata)
        self._types = {graph_input.name: graph_input.type for graph_input in self._session.get_inputs()}

    def _loaded(self, path: str | Path, level: str | None, provider: str) -> Any:
        import onnxruntime

        try:
            return onnxruntime.InferenceSession(str(path), session_options(level), providers=[provider])
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise load_error(one_line(error)) from error

    def values(self, feed: dict[str, torch.Tensor]) -> list[Any]:
        """Run on tensors by graph input name: for each output a tensor, a list of tensors, a text, or None.

        Raises:
            EndlessRunError: it took longer than ``limit``.
        """
        import onnxruntime
        from onnx import TensorProto

        values = {}
        for name, given in feed.items():
            tensor = torch.view_as_real(given) if given.is_complex() else given
            if tensor.dtype is torch.bfloat16:  # numpy has no such type: hand over the bits
                bits = tensor.contiguous().view(torch.uint16).numpy()
                values[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
            else:
                values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(tensor.contiguous().numpy())
        with self._stopped_in_time() as options:
            if is_plain(self._session):
                return [_tensor(each) for each in self._session.run_with_ort_values(self.output_names, values, options)]
            return [as_value(each) for each in self._session.run(self.output_names, values, options)]

    @contextlib.contextmanager
    def _stopped_in_time(self) -> Iterator[Any]:
        """The options of one run, which is told to stop after ``limit`` seconds."""
        import onnxruntime

        options = onnxruntime.RunOptions()
        if self.limit is None:
            yield options
            return
        timer = threading.Timer(self.limit, setattr, (options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            yield options
        except Exception as error:  # onnxruntime's exceptions have no common base
            if options.terminate:
                raise EndlessRunError(f"onnxruntime was not done in {self.limit:g} s") from error
            raise
        finally:
            timer.cancel()

    def outputs(self, feed: dict[str, torch.Tensor]) -> list[Output]:
        """Run on tensors by graph input name. The outputs are named by the graph."""
        found = dict(zip(self.output_names, self.values(feed), strict=True))
        # What a call ends with is what the next one begins with: which output that is, the metadata says.
        names = [*(name for name in found if name not in self.following), *self.following]
        return self.as_outputs([found[name] for name in names], names)

    def as_outputs(self, values: Sequence[Any], names: Sequence[str]) -> list[Output]:
        """Values of the graph's outputs, piece by piece, with their places in what eager returns."""
        return [
            Output(each.output, text_tensor(each.value), is_text=True, place=each.place)
            if isinstance(each.value, str)
            else Output(each.output, each.value, place=each.place)
            for each in pieces(self.told, names, values)
        ]

    def places(self) -> list[str]:
        """The places of the outputs, where the file tells them."""
        return [each.place for each in self.told.values()]

    def feed(self, model: Any, inputs: InputSet, order: Sequence[str] | None = None) -> dict[str, torch.Tensor]:
        """The arguments by graph input name.

        ``order`` names the flattened arguments as the program does; without it the names follow from the signature. An
        argument that the graph does not use may be missing in the file. If the names are others altogether, the
        tensors are taken in order.

        Raises:
            OnnxError: the file has inputs that the arguments don't explain.
        """
        leaves = named_leaves(model, inputs.copied())
        usable = [(name, tensor) for name, leaf in leaves if (tensor := _as_input(leaf)) is not None]
        by_name = {name.lower(): tensor for name, tensor in usable}
        if order is not None and len(order) == len(leaves):
            pairs = zip(order, leaves, strict=True)
            by_name |= {key.lower(): tensor for key, (_, leaf) in pairs if (tensor := _as_input(leaf)) is not None}
        state = {name: by_name.pop(key) for name, key in self._state_leaves() if key in by_name}
        missing = [name for name in self.input_names if name.lower() not in by_name]
        if not missing:
            return {name: by_name[name.lower()] for name in self.input_names} | state
        usable = [(name, tensor) for name, tensor in usable if not name.startswith(PREFIX)]
        if len(self.input_names) == len(usable):
            return {name: tensor for name, (_, tensor) in zip(self.input_names, usable, strict=True)} | state
        raise OnnxError(
            f"the file has the inputs {', '.join(self.input_names)}; "
            f"the arguments are {', '.join(name for name, _ in usable)}"
        )

    def without_state(self, feed: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The same without what the file has first values of: it starts from these."""
        return {name: tensor for name, tensor in feed.items() if name not in self.state_names}

    def _state_leaves(self) -> list[tuple[str, str]]:
        """The file's inputs that are state, each with what a program calls it."""
        return [(name, f"{PREFIX}{number}") for number, name in enumerate(self.state_names)]


def state_names(metadata: Mapping[str, str]) -> list[str]:
    """The inputs of a file that are its model's state, in order."""
    return [str(each["input"]) for each in json.loads(metadata.get(STATE, "[]"))]


def state_outputs(metadata: Mapping[str, str]) -> list[str]:
    """The outputs with which these go on, in the same order."""
    return [str(each["output"]) for each in json.loads(metadata.get(STATE, "[]"))]


def load_error(text: str) -> OnnxError:
    """The error of a file that onnxruntime can't load; ``text`` is what it says."""
    lacks = "NOT_IMPLEMENTED" in text or "bfloat16" in text
    hint = "its CPU provider has no kernel for this type: compute in float32 or float16" if lacks else ""
    if "is not a registered function/op" in text:
        hint = "give it the kernels of that domain beside the model: dy2st.onnx.register_kernels(library)"
    return OnnxError(f"onnxruntime can't load the file: {text}", hint=hint)


def _as_input(leaf: Any) -> torch.Tensor | None:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().cpu()
    if isinstance(leaf, (bool, int)):
        return torch.tensor(leaf)
    return torch.tensor(leaf, dtype=torch.float32) if isinstance(leaf, float) else None


def as_value(value: Any) -> Any:
    """What onnxruntime gives as numpy has it, as torch does: tensors, and lists of tensors; a text or None as it is."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [as_value(each) for each in value]
    return str(value.item()) if value.dtype.kind in "OSU" else torch.from_numpy(np.array(value))


def _tensor(value: Any) -> torch.Tensor:
    if value.element_type() == 16:  # noqa: PLR2004 - TensorProto.BFLOAT16
        return torch.utils.dlpack.from_dlpack(value).clone()
    return torch.from_numpy(value.numpy().copy())
