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
    TorchScript (``torch.jit.script`` of a module, ``torch.jit.trace``, ``torch.jit.load``) has none either: give the
    module or function that it was made from.

    Before:
        import dy2st
        model = eval("lambda x: x if x.sum() > 0 else -x")
        text = dy2st.code(model)

    After:
        import dy2st
        def model(x):
            return x if x.sum() > 0 else -x
        text = dy2st.code(model)
    """

    code = "D2S101"


class StaleSourceError(SourceError):
    r"""The source found is not what the function was compiled from, or is no Python.

    The file has changed since it was imported, so that its lines no longer belong to what runs.

    Before:
        import pathlib
        import dy2st
        pathlib.Path("nets.py").write_text("def net(x):\n    return x\n")
        import nets
        pathlib.Path("nets.py").write_text("def net(x):\n    return x * 2\n")
        text = dy2st.code(nets.net)

    After:
        import importlib
        import pathlib
        import dy2st
        pathlib.Path("nets.py").write_text("def net(x):\n    return x\n")
        import nets
        pathlib.Path("nets.py").write_text("def net(x):\n    return x * 2\n")
        importlib.reload(nets)
        text = dy2st.code(nets.net)
    """

    code = "D2S102"


class UnsupportedSourceError(SourceError):
    r"""The source holds something that can't be rewritten.

    The passes cover the language, but Python's compiler has limits (twenty nested blocks, for instance), and a
    rewritten function may nest more deeply than the original. Split the function.

    Before:
        import pathlib
        import dy2st
        loops = ["    " * (n + 1) + f"for i{n} in range(1):" for n in range(20)]
        pathlib.Path("deep.py").write_text("\n".join(["def net(x):", *loops, "    " * 21 + "return x"]))
        import deep
        net = dy2st.convert(deep.net)

    After:
        import pathlib
        import dy2st
        loops = ["    " * (n + 1) + f"for i{n} in range(1):" for n in range(10)]
        pathlib.Path("deep.py").write_text("\n".join(["def net(x):", *loops, "    " * 11 + "return x"]))
        import deep
        net = dy2st.convert(deep.net)
    """

    code = "D2S103"
