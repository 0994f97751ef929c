"""``D2S23x``: ways of control that a graph has no node for."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class RecursionDepthError(StagingError):
    """A recursion whose depth depends on a tensor.

    Each call is traced in turn, under the condition that decides whether there is another one, so the trace would never
    end. A recursion whose depth Python knows is fine. So is one that a dynamic size decides, if its largest value is
    declared: ``torch.export.Dim("n", max=1024)``.

    Before:
        def halve(x):
            return halve(x / 2) if x.abs().sum() > 1 else x
        def model(x):
            return halve(x)

    After:
        def model(x):
            while x.abs().sum() > 1:
                x = x / 2
            return x
    """

    code = "D2S231"


class GeneratorError(StagingError):
    """A generator or iterator whose steps depend on a tensor, or that is advanced on a staged path.

    A generator keeps its state inside Python, where it can't be carried through a graph, nor put back for the other
    path. Write a loop that appends to a list, or take the values before the branch.

    Before:
        def model(x):
            steps = iter([1, 2, 3])
            if x.sum() > 0:
                x = x * next(steps)
            return x * next(steps)

    After:
        def model(x):
            steps = [1, 2, 3]
            place = 0
            if x.sum() > 0:
                x = x * steps[place]
                place += 1
            return x * steps[place]
    """

    code = "D2S232"


class ComprehensionError(StagingError):
    """A comprehension, or a guard of a ``match``, that can't be staged.

    A list comprehension, or a generator expression that a builtin consumes, may have conditions on tensors: it makes a
    list of data-dependent length. A dict or a set has no such form.

    Before:
        def model(x):
            parts = {"first": x[0], "last": x[-1]}
            kept = {name: part for name, part in parts.items() if part > 0}
            return x * len(kept)

    After:
        def model(x):
            parts = {"first": x[0], "last": x[-1]}
            kept = {}
            for name, part in parts.items():
                if part > 0:
                    kept[name] = part
            return x * len(kept)
    """

    code = "D2S233"


class JumpError(StagingError):
    """A ``break``, ``continue`` or ``return`` under a tensor condition leaves a ``try``/``finally`` or a ``with``.

    What ``finally`` or the context manager does on the way out belongs to the path that jumps and to the one that does
    not, at different times. Jump after the statement.

    Before:
        def model(x):
            try:
                if x.sum() > 0:
                    return x * 2
            finally:
                x = x + 1
            return x

    After:
        def model(x):
            up = x.sum() > 0
            try:
                y = x * 2
            finally:
                x = x + 1
            if up:
                return y
            return x
    """

    code = "D2S234"


class RaiseError(StagingError):
    """An exception is raised on a staged path by code that dy2st does not convert, or on every path.

    A ``raise`` of converted code under a tensor condition becomes a guard of the graph, which fails where eager raises.
    Code that is left as it is raises while it is traced, whichever path the inputs take.

    Before:
        import dy2st
        @dy2st.not_to_static
        def reject(what):
            raise ValueError(what)
        def model(x):
            if x.sum() > 100:
                reject("too large")
            return x

    After:
        def model(x):
            if x.sum() > 100:
                raise ValueError("too large")
            return x
    """

    code = "D2S235"


class CaughtError(StagingError):
    """An exception raised under a tensor condition may be caught, and it is not known how the handlers go on.

    A ``raise``, an ``assert`` and functions of ``torch.linalg`` are branches of the graph where a ``try`` takes their
    exception. This one has a ``finally``, looks at more than one exception, or may catch what Python or torch raises
    elsewhere.

    Before:
        def model(x):
            try:
                if x.sum() > 0:
                    raise ValueError("positive")
            except ValueError:
                x = x * 2
            finally:
                x = x + 1
            return x

    After:
        def model(x):
            if x.sum() > 0:
                x = x * 2
            return x + 1
    """

    code = "D2S236"


class LoopHintError(StagingError):
    """A hint for a loop that can't be followed.

    ``dy2st.rolled`` needs steps that an index picks: a range, a tensor, tensors of one shape and dtype. A loop over
    modules or strings runs as Python. ``dy2st.unrolled`` needs a length that Python knows, ``dy2st.at_most`` a while.

    Before:
        import dy2st, torch
        layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.ReLU()])
        def model(x):
            for layer in dy2st.rolled(layers):
                x = layer(x)
            return x

    After:
        import dy2st, torch
        layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.ReLU()])
        def model(x):
            for layer in layers:
                x = layer(x)
            return x
    """

    code = "D2S238"


class StagedPathError(StagingError):
    """An operation fails under a tensor condition or in a staged loop, on a path that eager may never take.

    Both arms are traced, and a loop's body is traced with what any trip may see. A missing key or attribute is an error
    there, whichever path the inputs take. Where torch refuses dtypes or sizes that don't fit, the graph does so, too,
    for the inputs that come there.

    Before:
        import torch
        def model(x):
            shifts = {"small": 1}
            if x.sum() > 100:
                x = x + shifts["large"]
            return x

    After:
        import torch
        def model(x):
            shifts = {"small": 1, "large": 5}
            if x.sum() > 100:
                x = x + shifts["large"]
            return x
    """

    code = "D2S237"
