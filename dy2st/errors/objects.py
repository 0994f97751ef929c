"""``D2S22x``: which object is which, and what is changed in place."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class LostStateError(StagingError):
    """A function of ``dy2st.to_static`` stores what a program can't.

    A program has tensors only: parameters and buffers. A number that is counted up, a list that grows or a tensor in a
    plain attribute would change in eager code with each call, and never again once a program runs in its place.

    What the first call fills and later ones find (a table that is made when it is needed, a memo by shape) is filled by
    eager, which makes that call. If the next one would store something again, it is refused.

    Before:
        import dy2st, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.calls = 0
            def forward(self, x):
                self.calls += 1
                return x * self.calls
        y = dy2st.to_static(Net())(torch.ones(3))

    After:
        import dy2st, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))
            def forward(self, x):
                self.calls += 1
                return x * self.calls
        y = dy2st.to_static(Net())(torch.ones(3))
    """

    code = "D2S227"


class UnguardedError(StagingError):
    """A function of ``dy2st.to_static`` reads what may be something else in the next call, unseen.

    A program runs again only where everything that its code read is what it was. Whether a clock, a file, another
    process or an iterator would give the same again can't be told without asking it. Pass such a value in as an
    argument, or say that it is to be read once: ``dy2st.constant(value)``, or ``dy2st.to_static(..., freeze=True)`` for
    all that the function reads.

    Before:
        import dy2st, time, torch
        @dy2st.to_static
        def net(x):
            return x * time.time()
        y = net(torch.ones(3))

    After:
        import dy2st, time, torch
        @dy2st.to_static
        def net(x):
            return x * dy2st.constant(time.time())
        y = net(torch.ones(3))
    """

    code = "D2S229"


class HeapSizeError(StagingError):
    """A variable leads to more objects than can be looked through.

    Who else refers to an object, and what a call has changed of it, is found by looking through what the model and its
    variables lead to, up to a bound: what lies behind it might be changed unseen. Numbers and texts don't count. Keep
    what is so large in a tensor or an array, or where the model does not refer to it.

    Before:
        TABLE = [[number] for number in range(300_000)]
        def model(x):
            return x * len(TABLE)

    After:
        import torch
        TABLE = torch.arange(300_000)
        def model(x):
            return x * len(TABLE)
    """

    code = "D2S228"


class AliasError(StagingError):
    """A tensor is changed in place, and it may or may not be the same as another one, depending on the path.

    Eager changes the other tensor too, but only on the path where both are one. A graph has values, not memory, so what
    it holds of the other tensor is out of date from there on. That is an error if the other tensor is read again, or is
    an input, a parameter or a buffer. Compute a new tensor, or clone on every path.

    Before:
        def model(x):
            y = x * 2
            if x.sum() > 0:
                z = y
            else:
                z = x
            z += 1
            return y, z

    After:
        def model(x):
            y = x * 2
            if x.sum() > 0:
                z = y
            else:
                z = x
            z = z + 1
            return y, z
    """

    code = "D2S221"


class SharedContainerError(StagingError):
    """A list, dict or object is changed, and it may or may not be the same as another one, depending on the path.

    Eager changes the other one too, but only on the path where both are one object. Where nothing leads to the other
    one any more, neither a variable nor an iterator, there is nothing to refuse. Of an object that the model has made,
    an attribute may be stored: that attribute of the other one can't be read from there on. Make a copy on every path.

    Before:
        def model(x):
            first, second = [x], [-x]
            if x.sum() > 0:
                chosen = first
            else:
                chosen = second
            chosen[0] = x * 2
            return first[0]

    After:
        def model(x):
            first, second = [x], [-x]
            if x.sum() > 0:
                chosen = list(first)
            else:
                chosen = list(second)
            chosen[0] = x * 2
            return first[0]
    """

    code = "D2S222"


class IdentityError(StagingError):
    """An identity test (``is``) of what may or may not be the same object, depending on the path.

    The answer would be known only when the graph runs, and a graph has values, not objects. Set a flag in the branch.

    Before:
        def model(x):
            y = -x
            if x.sum() > 0:
                z = x
            else:
                z = y
            return x if z is y else y

    After:
        def model(x):
            y = -x
            negated = False
            if x.sum() > 0:
                z = x
            else:
                z = y
                negated = True
            return x if negated else y
    """

    code = "D2S223"


class DataError(StagingError):
    """The ``.data`` of a tensor is replaced, or a parameter's is used under a tensor condition or in a staged loop.

    ``.data`` changes a tensor behind the back of everything that watches it, the trace included. So does a method that
    changes the sizes of a tensor in place (``squeeze_``, ``t_``), on a path on which it was not made.

    Before:
        def model(x):
            y = x * 1
            y.data = x * 2
            return y

    After:
        def model(x):
            y = x * 1
            y.copy_(x * 2)
            return y
    """

    code = "D2S224"
    # The tensor, where it is one that the model refers to.
    constant: object = None


class BufferKindError(StagingError):
    """A buffer is assigned a value of another dtype, rank or size, or what is no tensor.

    A program keeps its buffers from one call to the next, in memory that is laid out when it is exported.

    Before:
        import torch
        class Mean(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("last", torch.zeros(3))
            def forward(self, x):
                self.last = x.mean()
                return x - self.last
        model = Mean()

    After:
        import torch
        class Mean(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("last", torch.zeros(()))
            def forward(self, x):
                self.last = x.mean()
                return x - self.last
        model = Mean()
    """

    code = "D2S225"


class LeakedValueError(StagingError):
    """An arm or a trip of a loop changes state where dy2st does not see it, or a value made there is used after it.

    What an arm stores in variables, attributes and containers comes out of it, if converted code does the storing. Code
    that dy2st leaves alone (marked with ``not_to_static``, from a library, written in C) can hide a change.

    Before:
        import dy2st
        @dy2st.not_to_static
        def keep(box, value):
            box.value = value
        class Box:
            value = None
        def model(x):
            box = Box()
            if x.sum() > 0:
                keep(box, x * 2)
            else:
                keep(box, x * 3)
            return box.value

    After:
        class Box:
            value = None
        def model(x):
            box = Box()
            if x.sum() > 0:
                box.value = x * 2
            else:
                box.value = x * 3
            return box.value
    """

    code = "D2S226"
