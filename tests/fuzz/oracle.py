"""What a program must do: the same eagerly, converted, captured and on onnxruntime, or be refused with a place."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import io
import itertools
import linecache
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import harness
import torch
from gradients import compare_gradients

import dy2st
import dy2st.onnx
from dy2st.errors import CarriedStateError, DtypeWarning, Dy2stError
from dy2st.report.model import NO_EVIDENCE

EQUAL, REFUSED, DISCARDED, FAILED = "equal", "refused", "discarded", "failed"
NUMBERS = itertools.count()
PLACE = str(Path(dy2st.__file__).parent.parent)


@dataclass(frozen=True)
class Outcome:
    """What came of a program: ``what`` is short and the same for the same cause, ``text`` is all there is to say."""

    kind: str
    what: str
    text: str = ""


EAGER_SECONDS = 5


class TooLongError(BaseException):
    """A program ran longer than it may."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TooLongError`` in the block after so many seconds of work, however busy the machine is."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    left = signal.setitimer(signal.ITIMER_PROF, seconds)[0]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def quick_exports() -> Iterator[None]:
    """Keep the table of torch's own translations between exports: to build it takes most of a small export's time."""
    from torch.onnx._internal.exporter import _registration

    kind: Any = _registration.ONNXRegistry
    before = kind.__dict__["from_torchlib"]
    build = functools.cache(before.__func__)

    def from_torchlib(cls: Any, opset_version: int = 20) -> Any:
        registry = copy.copy(build(cls, opset_version))
        registry.functions = {target: list(found) for target, found in registry.functions.items()}
        return registry

    kind.from_torchlib = classmethod(from_torchlib)
    try:
        yield
    finally:
        kind.from_torchlib = before


@contextlib.contextmanager
def imported(source: str, folder: Path) -> Iterator[ModuleType]:
    """A module of that source, in a file of its own."""
    name = f"fuzzed_{next(NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]
        linecache.cache.pop(str(file), None)
        file.unlink()


def judge(source: str, *, onnx: bool = True, static: bool = False, search: float = 0, seconds: float = 60) -> Outcome:
    """Run a program in all ways; with ``static`` as a static module, call after call.

    With ``search`` one that is equal is checked, with inputs that are searched for so long: no alarm may be raised.
    """
    with tempfile.TemporaryDirectory(prefix="dy2st-fuzz-") as folder, contextlib.redirect_stdout(io.StringIO()):
        try:
            with time_limit(seconds), contextlib.ExitStack() as stack:
                try:
                    module = stack.enter_context(imported(source, Path(folder)))
                except Exception as error:  # noqa: BLE001  no program
                    return Outcome(DISCARDED, f"import: {type(error).__name__}: {error}")
                if static:
                    return judged_static(module)
                outcome = judged(module, Path(folder), onnx=onnx)
                return judged_checked(module, search) if search and outcome.kind == EQUAL else outcome
        except TooLongError as error:
            return Outcome(FAILED, f"too long: {innermost(error)}", described(error))


def eager_results(module: ModuleType) -> tuple[list[Any], list[Any], str]:
    """The inputs that eager takes, what it makes of them, and why it does not take the last other one."""
    usable, wanted, problem = [], [], "there are no inputs"
    for given in module.SETS:
        try:
            with time_limit(EAGER_SECONDS):
                want = called(copy.deepcopy(module.model), given)
        except TooLongError:
            problem = "eager takes too long"
        except Exception as error:  # noqa: BLE001  whatever eager raises, the input proves nothing
            problem = f"{type(error).__name__}: {first_line(error)}"
        else:
            usable.append(given)
            wanted.append(want)
    return usable, wanted, problem


def judged(module: ModuleType, folder: Path, *, onnx: bool) -> Outcome:
    """Run a module's model in all ways."""
    usable, wanted, problem = eager_results(module)
    if not usable:
        return Outcome(DISCARDED, problem)

    stage = "converted"
    try:
        for given, want in zip(usable, wanted, strict=True):
            got = called(dy2st.convert(copy.deepcopy(module.model)), given)
            harness.compare(want, got, f"converted, {harness.shapes(given)}")
        stage = "capture"
        example = min(usable, key=small_sizes)
        args, kwargs = harness.split(example)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", DtypeWarning)
            program = dy2st.export(copy.deepcopy(module.model), args, kwargs, dynamic_shapes=module.DYNAMIC)
        if onnx:
            stage = "writing ONNX"
            file = folder / "model.onnx"
            dy2st.onnx.export(program, f=file)
        stage = "program"
        run = run_program(program)
        for given, want in zip(usable, wanted, strict=True):
            found = run(given)
            if notes:
                promote(want, found)
            harness.compare(want, found, f"program, {harness.shapes(given)}")
        if onnx:
            stage = "onnxruntime"
            run_file = harness.run_onnx(file)
            for given, want in zip(usable, wanted, strict=True):
                harness.compare(want, run_file(given), f"onnxruntime, {harness.shapes(given)}", state=False)
    except Dy2stError as error:
        return refusal(error, module, stage)
    except AssertionError as error:
        if "fuzzed_" not in innermost(error) and str(error).startswith(stage):
            return Outcome(FAILED, f"{stage}: another value: {kind_of_difference(str(error))}", described(error))
        return Outcome(
            FAILED, f"{stage}: AssertionError at {innermost(error)}: {pattern(first_line(error))}", described(error)
        )
    except Exception as error:  # noqa: BLE001  only our own errors may come out
        return Outcome(
            FAILED,
            f"{stage}: {type(error).__name__} at {innermost(error)}: {pattern(first_line(error))}",
            described(error),
        )
    return Outcome(EQUAL, "with ONNX" if onnx else "without ONNX")


def judged_static(module: ModuleType) -> Outcome:
    """Call an eager model and a static one in turn, on all inputs and then again: state goes on from call to call.

    Then compare their gradients.
    """
    usable, _, problem = eager_results(module)
    if not usable:
        return Outcome(DISCARDED, problem)
    eager, static = copy.deepcopy(module.model), dy2st.to_static(copy.deepcopy(module.model))
    try:
        for given in (*usable, *usable):
            try:
                want = called(eager, given)
            except Exception as error:  # noqa: BLE001  of a state that a call before has left
                with contextlib.suppress(type(error)):
                    called(static, given)
                    return Outcome(FAILED, f"static: no {type(error).__name__}", described(error))
                break
            harness.compare(want, called(static, given), f"static, {harness.shapes(given)}")
        compare_gradients(module, usable)
    except Dy2stError as error:
        return refusal(error, module, "static")
    except AssertionError as error:
        return Outcome(FAILED, f"static: another value: {kind_of_difference(str(error))}", described(error))
    except Exception as error:  # noqa: BLE001  only our own errors may come out
        what = f"static: {type(error).__name__} at {innermost(error)}: {pattern(first_line(error))}"
        return Outcome(FAILED, what, described(error))
    return Outcome(EQUAL, "static")


def judged_checked(module: ModuleType, search: float) -> Outcome:
    """Check a model that is right, as a user would, and see whether the check says so."""
    usable, _, _ = eager_results(module)
    sets = [(args, kwargs) if kwargs else args for args, kwargs in map(harness.split, usable)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = dy2st.check(module.model, sets, dynamic_shapes=module.DYNAMIC, search=search)
    except CarriedStateError as error:  # a check carries state, which the export has left alone
        return Outcome(REFUSED, f"check: {error.code}: {pattern(error.what)}", described(error))
    except Dy2stError as error:
        return Outcome(FAILED, f"check: {error.code}: {pattern(error.what)}", described(error))
    except Exception as error:  # noqa: BLE001  only our own errors may come out
        return Outcome(FAILED, f"check: {type(error).__name__} at {innermost(error)}", described(error))
    if report.ok:
        return Outcome(EQUAL, "covered" if report.covered else "not covered")
    stages = [stage for result in report.inputs for stage in result.stages if stage.status != "equal"]
    if not stages and all(result.problem.startswith(NO_EVIDENCE) for result in report.inputs if result.problem):
        return Outcome(EQUAL, "not covered")
    what = stages[0].differences[0].kind if stages[0].differences else pattern(stages[0].message)
    return Outcome(FAILED, f"check: {stages[0].stage} {stages[0].status}: {what}", str(report))


def promote(want: harness.Result, found: harness.Result) -> None:
    """Give what eager returns the dtype that the export has warned of."""
    leaves, spec = torch.utils._pytree.tree_flatten(want.outputs)
    others = torch.utils._pytree.tree_leaves(found.outputs)
    for i, (left, right) in enumerate(zip(leaves, others, strict=False)):
        if left is not None and torch.result_type(torch.as_tensor(left), torch.as_tensor(right)) is right.dtype:
            leaves[i] = torch.as_tensor(left).to(right.dtype)
    want.outputs = torch.utils._pytree.tree_unflatten(leaves, spec)


def called(model: Any, given: Any) -> harness.Result:
    """As the harness's; a result may be a view of a parameter that changed, which autograd can't compare."""
    result = harness.call(model, given)
    with torch.no_grad():
        result.outputs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), result.outputs)
    return result


def run_program(program: torch.export.ExportedProgram) -> Callable[[Any], harness.Result]:
    """Run an exported program, each time from the same buffers and parameters."""
    module = program.module()
    state = [*module.named_parameters(), *module.named_buffers()]
    initial = [(tensor, tensor.detach().clone()) for _, tensor in state]

    def run(given: Any) -> harness.Result:
        with torch.no_grad():
            for tensor, value in initial:
                tensor.copy_(value)
        return harness.call(module, given)

    return run


def small_sizes(given: Any) -> int:
    """How many sizes of an input set torch.export may take for constants."""
    leaves = torch.utils._pytree.tree_leaves(given)
    return sum(size < 2 for leaf in leaves if isinstance(leaf, torch.Tensor) for size in leaf.shape)


def refusal(error: Dy2stError, module: ModuleType, stage: str) -> Outcome:
    """A refusal is right if it names a line of the program; torch's failure to write ONNX is none."""
    what = f"{error.code} {pattern(error.what)}"
    if error.location is None:
        return Outcome(FAILED, f"{stage}: no place: {what}", described(error))
    if error.location.filename != module.__file__ or not error.location.line:
        return Outcome(FAILED, f"{stage}: a place outside the program: {what}", described(error))
    return Outcome(REFUSED, what, str(error))


def pattern(text: str) -> str:
    """A message without the names and numbers that differ from program to program."""
    text = re.sub(r"/\S+/|0x[0-9a-f]+", "", text)
    text = re.sub(r"\b(y|k|f|b|e|i|o|w|t|d|r|l|h|c|s|v|g|p|u|zuf|x)\d+\w*\b", r"\1#", text)
    text = re.sub(r"self\.\w+", "self.#", text)
    text = re.sub(r"(?<![A-Za-z])-?\d+(\.\d+)?", "#", text)
    return re.sub(r"'(self\.#|[a-z]+#?|[a-z]+#?\.\w+|[a-z]+#?\[[^']*\])'", "'#'", text)[:200]


def kind_of_difference(text: str) -> str:
    """A comparison's message without its numbers."""
    _, _, rest = text.partition(", output ")
    if not rest:
        _, _, rest = text.rpartition("]")
    return pattern(" ".join((rest.partition("Mismatched")[0] or rest).split()))[:80]


def first_line(error: BaseException) -> str:
    """The first line of an exception's text."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def innermost(error: BaseException) -> str:
    """The innermost frame of the project in an exception's traceback."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(PLACE) and "/tests/" not in frame.filename:
            return f"{Path(frame.filename).relative_to(PLACE)}:{frame.name}"
    return "outside"


def described(error: BaseException) -> str:
    """An exception with its traceback and causes, without colours."""
    return re.sub(r"\x1b\[\d+m", "", "".join(traceback.format_exception(error)))
