"""onnxruntime in a process of its own: what crashes there is a finding, not the end of a check.

Run by its path, so that it imports numpy and onnxruntime alone. Requests come as pickles on stdin, answers go as
pickles to what was stdout; what onnxruntime prints goes to stderr. A request is a tuple: the keys of sessions that are
no longer used, then ``"load", key, path, level, provider, threads, libraries`` or ``"run", key, {name: (array, element
type or None)}``; an answer is ``("done", value)`` or ``("failed", type name, text)``.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import onnxruntime

BFLOAT16 = 16


def load(path: str, level: str | None, provider: str, threads: int, libraries: tuple[str, ...]) -> Any:
    """A session, without onnxruntime's warnings, which are about optimisations."""
    options = onnxruntime.SessionOptions()
    if level is not None:
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4  # what fails is raised, and told by us
    options.intra_op_num_threads = threads
    for library in libraries:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(path, options, providers=[provider])


def run(session: Any, feed: dict[str, tuple[Any, int | None]]) -> list[tuple[Any, int | None]]:
    """The outputs of one run; bfloat16 travels as its bits, a sequence as a list, what is absent as None."""
    make = onnxruntime.OrtValue.ortvalue_from_numpy
    make_of = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    values = {name: make(array) if kind is None else make_of(array, kind) for name, (array, kind) in feed.items()}
    outputs = session.get_outputs()
    names = [output.name for output in outputs]
    if any(not output.type.startswith("tensor(") or output.type == "tensor(string)" for output in outputs):
        return [(value, None) for value in session.run(names, values)]
    return [_sent(value) for value in session.run_with_ort_values(names, values)]


def _sent(value: Any) -> tuple[Any, int | None]:
    if value.element_type() != BFLOAT16:
        return value.numpy(), None
    import torch

    return torch.utils.dlpack.from_dlpack(value).view(torch.uint16).numpy(), BFLOAT16


def main() -> None:
    """Answer requests until there are no more."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sessions: dict[int, Any] = {}
    while True:
        try:
            unused, kind, key, *arguments = pickle.load(requests)  # noqa: S301 - from who has started this
        except EOFError:
            return
        for each in unused:
            sessions.pop(each, None)
        answer: tuple[Any, ...]
        try:
            if kind == "load":
                session = sessions[key] = load(*arguments)
                inputs = [given.name for given in session.get_inputs()]
                told = dict(session.get_modelmeta().custom_metadata_map)
                answer = "done", (inputs, [output.name for output in session.get_outputs()], told)
            else:
                answer = "done", run(sessions[key], *arguments)
        except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions have no common base
            answer = "failed", type(error).__name__, str(error)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
