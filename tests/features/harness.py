"""What the feature tests share: run a model in four ways, compare, and know which paths the inputs took.

``agree`` is the proof of a feature. It runs each input through the eager model, through ``dy2st.convert`` (still
eager), through the program of ``dy2st.export``, and through the ONNX file that ``dy2st.onnx.export`` makes of it.
Values, shapes and dtypes must be the same. It also looks at what eager Python did: every line of the model must have
run for some input, and as many different paths must have been taken as the case says.

``agree_or_refuse`` accepts a refusal that names the place in place of agreement; ``refuses`` demands one.
"""

from __future__ import annotations

import copy
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import dy2st
import dy2st.errors
import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, FrameType

Input = tuple[Any, ...] | dict[str, Any]

outcomes: list[str] = []
"""What the running test has found so far: ``"Y"`` per agreement, ``"R"`` per refusal. It travels with the report."""


def row(*numbers: int) -> pytest.MarkDecorator:
    """Mark a test as evidence for these rows of docs/features.md."""
    return pytest.mark.row(*numbers)


def dyn(*dims: int) -> dict[int, Any]:
    """These dimensions are dynamic."""
    return dict.fromkeys(dims, Dim.DYNAMIC)


def vectors(*sizes: int, scale: float = 1.0, seed: int = 0) -> list[tuple[Tensor]]:
    """One-argument inputs: random vectors of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [(scale * torch.randn(size, generator=generator),) for size in sizes]


def tables(*sizes: tuple[int, int]) -> list[tuple[Tensor]]:
    """One-argument inputs: random matrices of these sizes."""
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(size, generator=generator),) for size in sizes]


def both_signs(*sizes: int) -> list[tuple[Tensor]]:
    """One-argument inputs: vectors of these lengths with a positive and with a negative sum."""
    return [(sign * (x.abs() + 0.1),) for (x,) in vectors(*sizes) for sign in (1.0, -1.0)]


def scalars(*values: float) -> list[tuple[Tensor]]:
    """One-argument inputs: 0-d tensors, of the dtype that the number has."""
    return [(torch.tensor(value),) for value in values]


@dataclass
class Result:
    """What a call returned, and what it left in its arguments and in the module's buffers."""

    outputs: Any
    arguments: list[Tensor] = field(default_factory=list)
    buffers: dict[str, Tensor] = field(default_factory=dict)


class Paths:
    """The paths that eager Python takes through the code of one file, instruction by instruction."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.taken: set[frozenset[tuple[Any, int]]] = set()
        self.codes: set[CodeType] = set()
        self.lines: set[tuple[CodeType, int]] = set()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Record one call as one path: how often each instruction ran."""
        ran: Counter[tuple[CodeType, int]] = Counter()

        def local(frame: FrameType, event: str, _: object) -> Any:
            if event == "opcode":
                ran[frame.f_code, frame.f_lasti] += 1
                self.lines.add((frame.f_code, frame.f_lineno))
            return local

        def enter(frame: FrameType, _event: str, _arg: object) -> Any:
            if frame.f_code.co_filename != self.filename:
                return None
            self.codes.add(frame.f_code)
            frame.f_trace_opcodes = True
            return local

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            yield
        finally:
            sys.settrace(before)
        self.taken.add(frozenset(ran.items()))

    def missed(self) -> list[int]:
        """The lines of functions entered that never ran."""
        return sorted(
            line
            for code in self.codes
            for line in {line for *_, line in code.co_lines() if line is not None} - {code.co_firstlineno}
            if (code, line) not in self.lines
        )


def source_file(model: Any) -> str:
    """The file of the model's own code."""
    while hasattr(model, "func"):  # functools.partial
        model = model.func
    model = getattr(model, "__func__", model)
    if isinstance(model, nn.Module):
        model = type(model).forward
    elif not hasattr(model, "__code__"):
        model = type(model).__call__
    filename: str = getattr(model, "__wrapped__", model).__code__.co_filename
    return filename


def split(given: Input) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments, cloned, so that no run sees another's changes."""
    given = pytree.tree_map_only(Tensor, torch.clone, given)
    return ((), given) if isinstance(given, dict) else (given, {})


def call(model: Callable[..., Any], given: Input) -> Result:
    """Run a model on clones of an input."""
    args, kwargs = split(given)
    with torch.no_grad():
        outputs = model(*args, **kwargs)
    arguments = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    buffers = dict(model.named_buffers()) if isinstance(model, nn.Module) else {}
    return Result(outputs, arguments, buffers)


def compare_leaf(want: Any, got: Any, where: str) -> None:
    """Value, shape and dtype; a Python number counts as a 0-d tensor of its kind."""
    if isinstance(want, str) or want is None:
        assert want == got, f"{where}: {got!r} instead of {want!r}"
        return
    # A view of a parameter that was written to has a gradient function that raises if anybody looks at it.
    expected, actual = torch.as_tensor(want).detach(), torch.as_tensor(got).detach()
    if isinstance(want, Tensor):
        assert actual.dtype == expected.dtype, f"{where}: {actual.dtype} instead of {expected.dtype}"
    else:
        # Whether a Python float becomes float32 or float64 is not a difference that a user can see in eager.
        kinds = [(t.dtype == torch.bool, t.dtype.is_floating_point) for t in (expected, actual)]
        assert kinds[0] == kinds[1], f"{where}: {actual.dtype} instead of a Python {type(want).__name__}"
        expected = expected.to(actual.dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if expected.dtype.is_floating_point else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(
        actual, expected, equal_nan=True, check_dtype=False, msg=lambda text: f"{where}: {text}", **tolerance
    )


def compare(want: Result, got: Result, where: str, *, state: bool = True) -> None:
    """Outputs, and unless switched off, arguments and buffers after the call."""
    wanted, found = (pytree.tree_leaves(result.outputs) for result in (want, got))
    if not state and not any(leaf is None for leaf in found):
        # What is None on all paths is no output of a file.
        wanted = [leaf for leaf in wanted if leaf is not None]
    assert len(found) == len(wanted), f"{where}: {len(found)} outputs instead of {len(wanted)}"
    for index, (left, right) in enumerate(zip(wanted, found, strict=True)):
        compare_leaf(left, right, f"{where}, output {index}")
    if state:
        for index, (left, right) in enumerate(zip(want.arguments, got.arguments, strict=True)):
            compare_leaf(left, right, f"{where}, argument {index} after the call")
        for name, value in want.buffers.items():
            compare_leaf(value, got.buffers[name], f"{where}, buffer {name} after the call")


def run_program(program: torch.export.ExportedProgram) -> Callable[[Input], Result]:
    """Run an exported program, each time from the same initial buffers."""
    module = program.module()
    initial = {name: buffer.clone() for name, buffer in module.named_buffers()}

    def run(given: Input) -> Result:
        for name, buffer in module.named_buffers():
            buffer.copy_(initial[name])
        return call(module, given)

    return run


def run_onnx(file: Path) -> Callable[[Input], Result]:
    """Run an ONNX file on onnxruntime; tensors of the input are given in order."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]

    def run(given: Input) -> Result:
        tensors = [leaf.numpy() for leaf in pytree.tree_leaves(split(given)) if isinstance(leaf, Tensor)]
        assert len(names) == len(tensors), f"the file's inputs are {names}, the model has {len(tensors)}"
        outputs = session.run(None, dict(zip(names, tensors, strict=True)))
        return Result([as_torch(output) for output in outputs])

    return run


def as_torch(output: Any) -> Any:
    """An output of onnxruntime: a tensor, a list of them, a text, or None."""
    if output is None:
        return None
    if isinstance(output, list):
        return [torch.as_tensor(each) for each in output]
    return output.item() if output.dtype.kind == "O" else torch.as_tensor(output)


def agree(
    model: Any,
    inputs: Sequence[Input],
    dynamic_shapes: Any = None,
    *,
    paths: int | None = None,
    whole: bool = True,
    raising: Sequence[Input] = (),
) -> None:
    """Eager, converted, exported and ONNX must agree on every input.

    ``paths``: the least number of different paths that eager Python takes over the inputs (default: two, where there
    are two inputs). ``whole``: every line of the model must run for some input. The first input is the example.
    ``raising``: inputs for which eager raises, and so must all others.
    """
    taken = Paths(source_file(model))
    wanted = []
    for given in inputs:
        fresh = copy.deepcopy(model)
        with taken.watch():
            wanted.append(call(fresh, given))
    for given in raising:
        with taken.watch(), pytest.raises(Exception) as raised:  # noqa: PT011  # which one is the model's business
            call(copy.deepcopy(model), given)
        with pytest.raises(raised.type):
            call(dy2st.convert(copy.deepcopy(model)), given)
    least = min(2, len(inputs)) if paths is None else paths
    assert len(taken.taken) >= least, f"the inputs take {len(taken.taken)} different paths, not {least}"
    assert not whole or not taken.missed(), f"no input runs lines {taken.missed()}"

    for given, want in zip(inputs, wanted, strict=True):
        compare(want, call(dy2st.convert(copy.deepcopy(model)), given), f"converted, {shapes(given)}")

    args, kwargs = split(inputs[0])
    program = dy2st.export(copy.deepcopy(model), args, kwargs, dynamic_shapes=dynamic_shapes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        dy2st.onnx.export(program, f=file)
        run_file = run_onnx(file)
        # After the file was made: a run changes the program's buffers.
        run = run_program(program)
        for given, want in zip(inputs, wanted, strict=True):
            compare(want, run(given), f"program, {shapes(given)}")
        for given, want in zip(inputs, wanted, strict=True):
            compare(want, run_file(given), f"onnxruntime, {shapes(given)}", state=False)
        for given in raising:
            with pytest.raises(RuntimeError, match="eager raises here"):
                run(given)
            with pytest.raises(Exception, match="eager raises here"):
                run_file(given)
    outcomes.append("Y")


def shapes(given: Input) -> str:
    """An input in a few words, for messages."""
    leaves = pytree.tree_leaves(given)
    return ", ".join(
        f"{leaf.tolist()}" if torch.is_tensor(leaf) and leaf.numel() < 6 else short(leaf) for leaf in leaves
    )


def short(leaf: Any) -> str:
    """A leaf's shape, or the leaf."""
    return f"{tuple(leaf.shape)}" if isinstance(leaf, Tensor) else repr(leaf)


def check_refusal(error: dy2st.errors.Dy2stError, model: Any) -> None:
    """A refusal says where, in the user's file."""
    assert error.location is not None, f"the error names no place: {error}"
    assert Path(error.location.filename) == Path(source_file(model)), f"the error names another file: {error}"
    assert error.location.line > 0, f"the error names no line: {error}"
    assert error.what, "the error does not say what was met"
    outcomes.append("R")


def agree_or_refuse(model: Any, inputs: Sequence[Input], dynamic_shapes: Any = None, **options: Any) -> None:
    """As ``agree``, or an error of ours that names the place: never a wrong value, never another exception."""
    try:
        agree(model, inputs, dynamic_shapes, **options)
    except dy2st.errors.Dy2stError as error:
        check_refusal(error, model)


def refuses(model: Any, example: Input, dynamic_shapes: Any = None) -> dy2st.errors.Dy2stError:
    """The export must be refused, with the place; for models that can't be right as a graph."""
    args, kwargs = split(example)
    with pytest.raises(dy2st.errors.Dy2stError) as caught:
        dy2st.export(copy.deepcopy(model), args, kwargs, dynamic_shapes=dynamic_shapes)
    check_refusal(caught.value, model)
    return caught.value


@contextmanager
def refused(
    error: type[dy2st.errors.Dy2stError], match: str | None = None
) -> Iterator[pytest.ExceptionInfo[dy2st.errors.Dy2stError]]:
    """The block must be refused with this error; for what is refused elsewhere than by ``dy2st.export``."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    outcomes.append("R")
