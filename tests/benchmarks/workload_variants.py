"""What computes a workload: eager, TorchScript, ``to_static``, dy2st's file, the expert's, and a loop of Python.

Each is a function without arguments that gives the results as arrays.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import expert_algorithms
import expert_decoding
import expert_fused
import expert_recurrent
import numpy as np
import onnx
import onnxruntime
import torch
from torch.utils import _pytree as pytree
from workload_models import BATCH, WIDTH, GreedyDecoder, Workload

import dy2st.onnx

Run = Callable[[], list[np.ndarray]]

EXPERTS: dict[str, Callable[[Any], onnx.ModelProto]] = {
    "gru_cell": expert_recurrent.gru_cell,
    "lstm_cell": expert_recurrent.lstm_cell,
    "gru_by_hand": expert_recurrent.gru_by_hand,
    "greedy_64": expert_decoding.greedy,
    "greedy_512": expert_decoding.greedy,
    "beam_search": expert_decoding.beam_search,
    "nms_500": expert_algorithms.nms,
    "nms_2000": expert_algorithms.nms,
    "ode_rk45": expert_algorithms.ode,
    "newton": expert_algorithms.newton,
    "early_exit": expert_algorithms.early_exit,
    "viterbi": expert_algorithms.viterbi,
    "components": expert_algorithms.components,
}
FUSED: dict[str, Callable[[Any], onnx.ModelProto]] = {
    "gru_cell": expert_fused.gru_cell,
    "lstm_cell": expert_fused.lstm_cell,
    "gru_by_hand": expert_fused.gru_by_hand,
}
STEPS: dict[str, Callable[[Any], onnx.ModelProto]] = {
    "gru_cell": expert_recurrent.gru_step,
    "lstm_cell": expert_recurrent.lstm_step,
    "greedy_64": expert_decoding.greedy_step,
    "greedy_512": expert_decoding.greedy_step,
}


def exported(workload: Workload) -> onnx.ModelProto:
    """The file that dy2st writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ours.onnx"
        dy2st.onnx.export(workload.model, workload.args, path, dynamic_shapes=workload.dynamic_shapes)
        return onnx.load(path)


def session(made: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    """A session on the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def of_session(running: onnxruntime.InferenceSession, args: Sequence[torch.Tensor]) -> Run:
    """A run of a file."""
    feed = {given.name: arg.numpy() for given, arg in zip(running.get_inputs(), args, strict=True)}
    return lambda: list(running.run(None, feed))


def of_model(model: Any, args: Sequence[torch.Tensor]) -> Run:
    """A call of a model, without gradients."""

    def run() -> list[np.ndarray]:
        with torch.no_grad():
            return [np.asarray(leaf) for leaf in pytree.tree_leaves(model(*args))]

    return run


def scripted(workload: Workload) -> Run | None:
    """TorchScript, or None where it does not compile."""
    try:
        return of_model(torch.jit.script(workload.model), workload.args)
    except (RuntimeError, NotImplementedError):  # its errors about what it does not support
        return None


def stepped(workload: Workload, threads: int) -> Run | None:
    """The expert's model of one step, in a loop of Python whose state stays in onnxruntime's memory."""
    if workload.name not in STEPS:
        return None
    with torch.no_grad():
        running = session(STEPS[workload.name](workload.model), threads)
    if isinstance(workload.model, GreedyDecoder):
        return _greedy_steps(running, workload.model, workload.args[0].numpy())
    return _recurrent_steps(running, *(arg.numpy() for arg in workload.args))


def _recurrent_steps(running: onnxruntime.InferenceSession, x: np.ndarray, lengths: np.ndarray) -> Run:
    states = [each.name for each in running.get_inputs()[2:]]
    outputs = [each.name for each in running.get_outputs()]

    def run() -> list[np.ndarray]:
        nothing = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((BATCH, WIDTH), np.float32))
        current = [nothing] * len(states)
        out = np.empty((*x.shape[:2], WIDTH), np.float32)
        binding = running.io_binding()
        alive = np.arange(len(x))[:, None, None] < lengths[:, None]
        for t in range(len(x)):
            for name, value in (("x", x), ("here", alive)):
                row = value[t]
                binding.bind_input(name, "cpu", 0, row.dtype, row.shape, row.ctypes.data)
            for name, state in zip(states, current, strict=True):
                binding.bind_ortvalue_input(name, state)
            binding.bind_output(outputs[0], "cpu", 0, np.float32, out.shape[1:], out[t].ctypes.data)
            for name in outputs[1:]:
                binding.bind_output(name, "cpu")
            running.run_with_iobinding(binding)
            current = binding.get_outputs()[1:]
        return [out, *(state.numpy() for state in current)]

    return run


def _greedy_steps(running: onnxruntime.InferenceSession, model: GreedyDecoder, first: np.ndarray) -> Run:
    states = [each.name for each in running.get_inputs()[1:]]
    outputs = [each.name for each in running.get_outputs()]
    empty = np.zeros((len(first), model.heads, 0, model.head_width), np.float32)

    def run() -> list[np.ndarray]:
        make = onnxruntime.OrtValue.ortvalue_from_numpy
        caches = [make(empty) for _ in states[2:]]
        current = [make(first), make(np.zeros(len(first), bool)), *caches]
        binding = running.io_binding()
        ids = [first]
        for step in range(model.limit):
            binding.bind_cpu_input("i", np.array(step))
            for name, state in zip(states, current, strict=True):
                binding.bind_ortvalue_input(name, state)
            for name in outputs:
                binding.bind_output(name, "cpu")
            running.run_with_iobinding(binding)
            go_on, *current = binding.get_outputs()
            ids.append(current[0].numpy())
            if not go_on.numpy():
                break
        return [np.stack(ids, 1)]

    return run


def require_equal(name: str, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    """Raise an error where a variant computes something else than eager."""
    for left, right in itertools.zip_longest(found, wanted):
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4, err_msg=name)


def nodes(graph: onnx.GraphProto) -> int:
    """The number of nodes at any depth."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return len(graph.node) + sum(nodes(each) for each in inner)


def bytes_without_weights(made: onnx.ModelProto) -> int:
    """The size of a file whose initializers are gone."""
    copy = onnx.ModelProto()
    copy.CopyFrom(made)
    del copy.graph.initializer[:]
    return int(copy.ByteSize())


def loading_time(made: onnx.ModelProto, threads: int) -> float:
    """Seconds that the creation of a session takes: the least of five."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        session(made, threads)
        found.append(time.perf_counter() - start)
    return min(found)
