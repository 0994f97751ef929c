"""Kernels of one's own for onnxruntime: the libraries that every session of ours loads, and a session's options.

Source: ``SessionOptions.register_custom_ops_library``, https://onnxruntime.ai/docs/reference/operators/add-custom-op.html.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import onnxruntime

from dy2st.errors import UsageError

_LIBRARIES: list[str] = []
_OF_THIS_PROCESS: set[str] = set()


def register_kernels(library: str | os.PathLike[str], *, in_python: bool = False) -> None:
    """Let checks, and whatever else of dy2st runs a file, load a library of custom operators into onnxruntime.

    A file with nodes of a domain of its own runs only where there are kernels for them. ``onnxruntime`` takes these
    from a shared library. It is registered once, beside the model, before the model is checked or run.

    Args:
        library: the path of the shared library.
        in_python: the library calls functions of this Python process, as ``onnxruntime-extensions`` does for
            ``onnxruntime_extensions.onnx_op``. Checks then run onnxruntime in this process, where its crash would be
            that of the check.

    Raises:
        UsageError: there is no such file, or onnxruntime can't load it.
    """
    path = str(Path(library).resolve())
    if path in _LIBRARIES:
        return
    if not Path(path).is_file():
        raise UsageError(f"there is no library of kernels {os.fspath(library)}")
    try:
        onnxruntime.SessionOptions().register_custom_ops_library(path)
    except Exception as error:  # onnxruntime's exceptions have no common base
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"onnxruntime can't load the kernels of {os.fspath(library)}: {first}") from error
    _LIBRARIES.append(path)
    if in_python:
        _OF_THIS_PROCESS.add(path)


def in_this_process() -> bool:
    """Whether there are kernels that another process would not have."""
    return bool(_OF_THIS_PROCESS)


def registered_kernels() -> tuple[str, ...]:
    """The libraries, in the order in which they were registered."""
    return tuple(_LIBRARIES)


def session_options(
    level: str | None = None, *, severity: int = 4, libraries: Iterable[str] | None = None
) -> onnxruntime.SessionOptions:
    """Options with the kernels that are registered, or with those of ``libraries``.

    ``level`` names one of onnxruntime's levels of optimisation (``"ORT_DISABLE_ALL"``) in place of its default. With
    the ``severity`` 4 it prints nothing of what fails: that is raised, and told by us. A session has as many threads as
    ``OMP_NUM_THREADS`` says, which torch heeds by itself.
    """
    options = onnxruntime.SessionOptions()
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():  # 0 stands for as many as there are cores
        options.intra_op_num_threads = int(threads)
    options.log_severity_level = severity
    if level is not None:
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    for library in _LIBRARIES if libraries is None else libraries:
        options.register_custom_ops_library(library)
    return options
