"""``D2S20x``: the base of what can't be staged, and variables whose values differ by path."""

from __future__ import annotations

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


class DifferentTypesError(StagingError):
    """A variable is of one type on one path and of another type on the other, and is used afterwards.

    After the branch or loop one variable stands for both paths, so a graph must hold either value in one place: a
    tensor and a string have none in common, nor have the Python int 0 and the Python float 0.5. If nobody uses the
    variable afterwards, its types may differ.

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
    """A variable is a tensor of one dtype on one path and of another dtype on the other, and is used afterwards.

    A value in a graph has one dtype, which is known before the graph runs. Eager code that goes on with either dtype
    would give results of either dtype. Cast on one of the paths.

    Before:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.long()
            return y

    After:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.long().to(x.dtype)
            return y
    """

    code = "D2S203"


class DifferentRanksError(StagingError):
    """A variable is a tensor of one rank on one path and of another rank on the other, and is used afterwards.

    Sizes may differ by path and from one trip of a loop to the next; the number of dimensions may not, since ONNX
    operators are chosen by it. Keep the dimension (``keepdim=True``), or expand.

    Before:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.mean()
            return y

    After:
        def model(x):
            if x.sum() > 0:
                y = x
            else:
                y = x.mean(0, keepdim=True)
            return y
    """

    code = "D2S204"


class DifferentStructureError(StagingError):
    """A variable holds containers of different structure on the two paths, and is used afterwards.

    Lists, tuples, dicts and dataclasses are joined leaf by leaf, so both paths need the same number of elements, or the
    same keys. A list that only grows may grow by different numbers of tensors.

    Before:
        def model(x):
            if x.sum() > 0:
                parts = {"up": x}
            else:
                parts = {"up": x, "down": -x}
            return parts["up"]

    After:
        import torch
        def model(x):
            if x.sum() > 0:
                parts = {"up": x, "down": torch.zeros_like(x)}
            else:
                parts = {"up": x, "down": -x}
            return parts["up"]
    """

    code = "D2S205"


class DifferentObjectsError(StagingError):
    """A variable is one Python object on one path and another one on the other, and is used afterwards.

    Strings, dtypes, sets, modules and objects of your own have no place in a graph. A number or a tensor has: choose
    among the objects where they are used. Functions may differ by path, as long as they are only called.

    Before:
        def model(x):
            if x.sum() > 0:
                mode = "double"
            else:
                mode = "negate"
            return x * 2 if mode == "double" else -x

    After:
        def model(x):
            if x.sum() > 0:
                double = True
            else:
                double = False
            return x * 2 if double else -x
    """

    code = "D2S206"


class NoValueError(StagingError):
    """A variable is read that has no value on some path that leads there.

    Which path is taken is known only when the graph runs. Eager code may never read the variable on that path, or fail
    if it does; the graph needs a value on both. A loop that may not run at all gives no value either.

    Before:
        def model(x):
            up = x.sum() > 0
            if up:
                scale = x.max()
            if up:
                x = x / scale
            return x

    After:
        import torch
        def model(x):
            up = x.sum() > 0
            scale = torch.ones(())
            if up:
                scale = x.max()
            if up:
                x = x / scale
            return x
    """

    code = "D2S207"
