"""``D2S1xx``: the source of a function."""

from __future__ import annotations

from dy2st.errors.base import Dy2stError


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
