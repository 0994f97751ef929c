"""``D2S20x``: the base of what can't be staged, and variables whose values differ by path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from dy2st.errors.base import Dy2stError, Location


class StagingError(Dy2stError):
    """Control flow or state that can't be staged: the base of the ``D2S2xx`` errors.

    Under a tensor condition both arms become parts of the graph, and a loop's state must keep its kind from one trip to
    the next. What has no place in a graph is refused, never guessed. Catch this class to catch every refusal; each kind
    has a class and a code of its own below it.

    Before:
        import numpy
        import torch
        def model(x):
            return torch.from_numpy(numpy.sin(x.numpy()))

    After:
        import torch
        def model(x):
            return torch.sin(x)
    """

    code = "D2S201"

    def __init__(
        self, what: str, *, hint: str = "", location: Location | None = None, origin: Location | None = None
    ) -> None:
        """``origin`` is the branch or loop that made a value what it is, where ``location`` is where it is read."""
        super().__init__(what, hint=hint, location=location)
        self.origin = origin
        # Gives the attempt up for another one, if nobody catches the error, and if there is one without it.
        self.otherwise: Callable[[], None] | None = None

    def or_else(self, otherwise: Callable[[], None] | None) -> Self:
        """This error, unless ``otherwise`` finds another attempt to stage the model."""
        self.otherwise = otherwise
        return self


class DifferentTypesError(StagingError):
    """A value is of one type on one path and of another type on the other, where it has to be of one.

    What the model returns is one value of the graph, of one type: not a tensor or a string, nor the Python int 0 or the
    float 0.5. Inside the model a variable may be of several types; where these are too many, or hidden in something
    else, it can't be read.

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

    code = "D2S202"


class DifferentDtypesError(StagingError):
    """A value is a tensor of one dtype on one path and of another on the other, where it has to be of one.

    What the model returns, what a loop appends to a list and what a buffer holds has one dtype, which is known before
    the graph runs. Cast on one of the paths. (Integers beside floats that are returned become floats, with a warning.)

    Before:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.double()
            return y

    After:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.double().to(x.dtype)
            return y
    """

    code = "D2S203"


class DifferentRanksError(StagingError):
    """A value is a tensor of one rank on one path and of another on the other, where it has to be of one.

    Sizes may differ by path and from one trip of a loop to the next; the number of dimensions of what a loop appends
    to a list may not. Keep the dimension (``keepdim=True``), or expand.

    Before:
        def model(x):
            rows = [x]
            while x.abs().sum() > 1:
                x = x / 2
                rows.append(x.mean())
            return rows

    After:
        def model(x):
            rows = [x]
            while x.abs().sum() > 1:
                x = x / 2
                rows.append(x.mean().expand(x.shape))
            return rows
    """

    code = "D2S204"


class DifferentStructureError(StagingError):
    """A container has another structure on one path than on the other, where it has to have one.

    A program has a fixed number of results: lists, tuples, dicts and dataclasses that the model returns have the same
    number of elements, or the same keys, on every path.

    Before:
        def model(x):
            if x.sum() > 0:
                parts = {"up": x}
            else:
                parts = {"up": x, "down": -x}
            return parts

    After:
        import torch
        def model(x):
            if x.sum() > 0:
                parts = {"up": x, "down": torch.zeros_like(x)}
            else:
                parts = {"up": x, "down": -x}
            return parts
    """

    code = "D2S205"


class DifferentObjectsError(StagingError):
    """A value is one Python object on one path and another one on the other, where a graph would have to hold it.

    Strings, dtypes, modules and objects of your own may differ by path inside the model, a few at a time: what is done
    with them is done with each. As a result of the model they have no place in a graph; a number, a tensor, a text or
    ``None`` has.

    Before:
        import torch
        import dy2st
        def model(x):
            dtype = torch.float64
            if x.sum() < 0:
                dtype = torch.float32
            return x.abs().sum(), dtype
        dy2st.export(model, (torch.ones(3),))

    After:
        import torch
        import dy2st
        def model(x):
            dtype = "float64"
            if x.sum() < 0:
                dtype = "float32"
            return x.abs().sum(), dtype
        dy2st.export(model, (torch.ones(3),))
    """

    code = "D2S206"


class NoValueError(StagingError):
    """A variable is read that has no value on any path that leads there.

    Eager raises UnboundLocalError if it gets there. Inputs that don't get there say nothing of it, but both arms of a
    tensor condition are traced, and so is the body of a loop that never runs.

    Before:
        def model(x):
            while x.sum() > 100:
                x = x - step
                step = 1
            return x

    After:
        def model(x):
            step = 1
            while x.sum() > 100:
                x = x - step
            return x
    """

    code = "D2S207"
