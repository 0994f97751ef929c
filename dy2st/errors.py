"""The errors that dy2st raises: one hierarchy, a stable code for each kind, one line that says what and where.

Codes: ``D2S1xx`` syntax and source, ``D2S2xx`` staging, ``D2S3xx`` capture, ``D2S4xx`` ONNX, ``D2S5xx`` parity,
``D2S9xx`` usage.

A class's docstring is its help page: ``dy2st explain CODE`` prints it. It says what the error means, why it is one, and
shows what raises it (*Before*) and what to write instead (*After*); a test compiles both.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Location:
    """A place in the user's source: file, line (1-based), column (0-based, None if unknown) and the line's text."""

    filename: str
    line: int
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


class Dy2stError(Exception):
    """Base of every error that dy2st raises on purpose.

    ``what`` says what was met, ``hint`` what to write instead, ``location`` where in the user's source.
    Catch it to catch them all; each kind has a class and a code of its own.

    Before:
        import dy2st
        report = dy2st.check(model, inputs)

    After:
        import dy2st
        try:
            report = dy2st.check(model, inputs)
        except dy2st.errors.Dy2stError as error:
            print(error.code, error.what, error.location)
    """

    code = "D2S900"

    def __init__(self, what: str, *, hint: str = "", location: Location | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}{self.code}: {self.what}"]
        if self.location and self.location.text:
            lines.append(f"    {self.location.text.strip()}")
        if self.hint:
            lines.append(f"  instead: {self.hint}")
        return "\n".join(lines)


class SourceError(Dy2stError):
    """The source of a function can't be had, or can't be rewritten: the base of the ``D2S1xx`` errors.

    dy2st reads the source of a function to find its control flow. A function without any can be left alone:
    ``dy2st.not_to_static`` marks it.

    Before:
        import dy2st
        text = dy2st.code(len)

    After:
        import dy2st
        def size(x):
            return x.shape[0]
        text = dy2st.code(size)
    """

    code = "D2S100"


class NoSourceError(SourceError):
    """A function has no source: it is built in, or its text was never kept.

    A function that was typed into a prompt, built by ``exec`` or written in C has no text to read. Put the function
    into a file or a notebook cell, or mark it with ``dy2st.not_to_static`` if it has no control flow on tensors.

    Before:
        model = eval("lambda x: x if x.sum() > 0 else -x")

    After:
        def model(x):
            return x if x.sum() > 0 else -x
    """

    code = "D2S101"


class StaleSourceError(SourceError):
    """The source found is not what the function was compiled from, or is no Python.

    The file has changed since it was imported, so that its lines no longer belong to what runs.

    Before:
        import models  # then models.py is edited
        import dy2st
        text = dy2st.code(models.net)

    After:
        import importlib
        import models
        import dy2st
        importlib.reload(models)
        text = dy2st.code(models.net)
    """

    code = "D2S102"


class UnsupportedSourceError(SourceError):
    """The source holds something that can't be rewritten.

    The passes cover the language, but Python's compiler has limits (twenty nested blocks, for instance), and a
    rewritten function may nest more deeply than the original. Split the function.

    Before:
        def model(x):
            for a in range(2):
                for b in range(2):
                    for c in range(2):
                        x = x + a * b * c
            return x

    After:
        def inner(x, a):
            for b in range(2):
                for c in range(2):
                    x = x + a * b * c
            return x
        def model(x):
            for a in range(2):
                x = inner(x, a)
            return x
    """

    code = "D2S103"


class StagingError(Dy2stError):
    """Control flow or state that can't be staged.

    Under a tensor condition both arms become parts of the graph, and a loop's state must keep its kind from one trip to
    the next. A variable that is a tensor on one path and a string or an object on the other has no place in a graph.

    Before:
        def model(x):
            if x.sum() > 0:
                result = x * 2
            else:
                result = "negative"
            return result

    After:
        import torch
        def model(x):
            if x.sum() > 0:
                result = x * 2
            else:
                result = torch.zeros_like(x)
            return result
    """

    code = "D2S201"


class CaptureError(Dy2stError):
    """torch.export could not capture the model as it was asked to.

    Mostly a size that was declared dynamic became a constant, or depends on another one: the model reshapes to a fixed
    size, or adds two tensors whose sizes were declared as independent. A graph with that constant inside would be wrong
    for other sizes.

    Before:
        import torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n")}}
        def model(x):
            return x.reshape(4, 3)

    After:
        import torch
        dynamic_shapes = {"x": {0: torch.export.Dim("n")}}
        def model(x):
            return x.reshape(x.shape[0], 3)
    """

    code = "D2S301"


class RaisedError(CaptureError):
    """The model's code raises an exception while it is traced, though not when it runs eagerly.

    A trace runs with stand-ins for tensors, which have a shape and a dtype but no values and no storage. Code that asks
    for more than that, or that does something else during an export, fails.

    Before:
        import ctypes
        def model(x):
            return x + ctypes.c_float.from_address(x.data_ptr()).value

    After:
        def model(x):
            return x + x.flatten()[0]
    """

    code = "D2S302"


class OnnxError(Dy2stError):
    """The program can't be written as ONNX, or the file can't be run or saved: the base of the ``D2S4xx`` errors.

    The exported model does not pass ``onnx.checker``, onnxruntime can't load it, or torch's exporter fails on it. A
    newer ``--opset`` or the operation written with simpler ones may help.

    Before:
        import torch
        def model(x):
            return torch.special.bessel_j0(x)

    After:
        import torch
        def model(x):
            return 1 - x**2 / 4 + x**4 / 64
    """

    code = "D2S401"


class UntranslatedError(OnnxError):
    """An operator of the program has no ONNX translation.

    ONNX has fewer operators than torch, and torch's exporter composes only some of the others.

    Before:
        import torch
        def model(x):
            return torch.special.bessel_j0(x)

    After:
        import torch
        def model(x):
            return 1 - x**2 / 4 + x**4 / 64
    """

    code = "D2S403"


class SaveError(OnnxError):
    """The ONNX file can't be written where it was asked for.

    The folder does not exist or is not writable, the disk is full, or the path is something other than a file. Nothing
    is left behind: dy2st writes beside the target and moves the finished file into place.

    Before:
        dy2st.onnx.export(model, (x,), "missing_folder/model.onnx")

    After:
        import pathlib
        pathlib.Path("out").mkdir(exist_ok=True)
        dy2st.onnx.export(model, (x,), "out/model.onnx")
    """

    code = "D2S402"


class ParityError(Dy2stError):
    """The exported file does not compute what eager computes.

    Raised by ``ParityReport.raise_if_different()``; the report says on which input, at which output and by how much.
    Differences of a few units in the last place come from another order of additions: loosen ``rtol``/``atol``. Larger
    ones are a defect, of dy2st, of the exporter or of onnxruntime.

    Before:
        report = dy2st.check(model, inputs, rtol=1e-9)
        report.raise_if_different()

    After:
        report = dy2st.check(model, inputs, rtol=1e-4)
        report.raise_if_different()
    """

    code = "D2S501"


class UnusableInputError(ParityError):
    """Parity could not be checked on an example input.

    Eager itself rejects the input, or every number that eager returns for it is NaN, or it returns no tensor at all:
    such an input proves nothing. Give inputs that the model accepts, one for each path that it can take.

    Before:
        import torch
        def example_inputs():
            return [(torch.full((3,), float("nan")),)]

    After:
        import torch
        def example_inputs():
            return [(torch.ones(3),), (-torch.ones(3),)]
    """

    code = "D2S502"


class UsageError(Dy2stError):
    """Wrong use: an option, an argument, a combination of them.

    Before:
        dy2st.check(model, x)

    After:
        dy2st.check(model, [(x,), (-x,)])
    """

    code = "D2S901"


class TargetError(UsageError):
    """The target of a command can't be found, imported or called.

    A target is ``file.py:name`` or ``package.module:name``; the name is ``model`` if it is left out. It names an
    ``nn.Module``, an ``nn.Module`` class or a factory without required arguments, or a function.

    Before:
        import torch
        def build(width):
            return torch.nn.Linear(width, 1)

    After:
        import torch
        def model():
            return torch.nn.Linear(8, 1)
    """

    code = "D2S902"


class InputSpecError(UsageError):
    """An input spec does not parse, or does not fit the model's signature.

    A spec is ``name=dtype[dimensions]``: a number is a fixed size, a name a dynamic one; ``:low..high`` after a
    dimension bounds its size, after the bracket the values.

    Before:
        input_spec = ["x=float[batch,3"]

    After:
        input_spec = ["x=f32[batch:1..64,3]:0..1", "ids=i64[batch,length]:0..99"]
    """

    code = "D2S903"


class InputFileError(UsageError):
    """A file of inputs is missing, unreadable or of an unknown kind.

    ``--inputs`` takes ``.npz`` and ``.safetensors`` (one set of named tensors), ``.pt`` (the sets themselves: a list of
    tuples or dicts; loaded with ``weights_only=True``) and ``file.py:function``.

    Before:
        import torch
        torch.save(model, "inputs.pt")

    After:
        import torch
        torch.save([(torch.ones(3),), (torch.zeros(3),)], "inputs.pt")
    """

    code = "D2S904"


class ExampleInputsError(UsageError):
    """The example inputs are missing or not of the right form.

    A set of inputs is a tuple of arguments or a dict of keyword arguments; the example inputs are an iterable of sets,
    or a dict that gives each set a name.

    Before:
        import torch
        def example_inputs():
            return torch.ones(3)

    After:
        import torch
        def example_inputs():
            return {"positive": (torch.ones(3),), "negative": (-torch.ones(3),)}
    """

    code = "D2S905"


class SettingsError(UsageError):
    r"""The settings in ``[tool.dy2st]`` of pyproject.toml are wrong.

    Keys: ``targets`` (what ``dy2st check`` checks without arguments), ``opset``, ``rtol``, ``atol``.

    Before:
        settings = "[tool.dy2st]\nopset = 'new'"

    After:
        settings = "[tool.dy2st]\nopset = 20\ntargets = ['models/']"
    """

    code = "D2S906"


def kinds() -> dict[str, type[Dy2stError]]:
    """Every error class by its code, in the order of the codes."""

    def below(kind: type[Dy2stError]) -> Iterator[type[Dy2stError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    return {kind.code: kind for kind in sorted(below(Dy2stError), key=lambda kind: kind.code)}


def explain(code: str) -> str:
    """The help page of an error code such as ``D2S201``, in either case.

    Raises:
        UsageError: there is no such code.
    """
    kind = kinds().get(code.strip().upper())
    if kind is None:
        raise UsageError(f"there is no error code {code!r}", hint="`dy2st explain` lists them")
    return f"{kind.code} {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}"


def summaries() -> dict[str, str]:
    """What each code means, in one sentence."""
    return {code: inspect.cleandoc(kind.__doc__ or "").partition("\n")[0] for code, kind in kinds().items()}
