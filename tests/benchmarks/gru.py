"""A GRU cell over time, written as a Python loop: eager, dy2st's ONNX, and an ONNX ``Scan`` written by hand.

    python tests/benchmarks/gru.py [--steps 200 --batch 4 --hidden 64 --repeat 50]

All run on one thread. Rows written one by one (``out[t] = h``) should become the loop's stacked output: then dy2st's
file is about as fast as the ``Scan`` (at most 1.3 times its time), and at least 2.5 times as fast as eager.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.export import Dim

import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Callable


class GRULoop(nn.Module):
    """``[time, batch, inputs]`` to the state after every step, and the last one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = x.new_zeros(x.shape[1], x.shape[2])
        out = torch.zeros_like(x)
        for t in range(x.shape[0]):
            h = self.cell(x[t], h)
            out[t] = h
        return out, h


def scan_model(cell: nn.GRUCell, width: int) -> onnx.ModelProto:
    """The same computation, as one would write it with ``Scan``: gates in the body, weights shared from outside."""
    weights = {
        "w_x": cell.weight_ih.T,
        "w_h": cell.weight_hh.T,
        "b_x": cell.bias_ih,
        "b_h": cell.bias_hh,
    }
    initializers = [
        numpy_helper.from_array(value.detach().contiguous().numpy(), name) for name, value in weights.items()
    ]
    initializers.append(numpy_helper.from_array(torch.zeros(1).numpy(), "zero"))

    node = helper.make_node
    body = helper.make_graph(
        [
            node("Gemm", ["x_t", "w_x", "b_x"], ["from_x"]),
            node("Gemm", ["h", "w_h", "b_h"], ["from_h"]),
            node("Split", ["from_x"], ["x_r", "x_z", "x_n"], axis=1, num_outputs=3),
            node("Split", ["from_h"], ["h_r", "h_z", "h_n"], axis=1, num_outputs=3),
            node("Add", ["x_r", "h_r"], ["sum_r"]),
            node("Sigmoid", ["sum_r"], ["r"]),
            node("Add", ["x_z", "h_z"], ["sum_z"]),
            node("Sigmoid", ["sum_z"], ["z"]),
            node("Mul", ["r", "h_n"], ["reset"]),
            node("Add", ["x_n", "reset"], ["sum_n"]),
            node("Tanh", ["sum_n"], ["n"]),
            node("Sub", ["h", "n"], ["difference"]),
            node("Mul", ["z", "difference"], ["kept"]),
            node("Add", ["n", "kept"], ["h_next"]),
            node("Identity", ["h_next"], ["row"]),
        ],
        "step",
        [tensor_info("h", ["batch", width]), tensor_info("x_t", ["batch", width])],
        [tensor_info("h_next", ["batch", width]), tensor_info("row", ["batch", width])],
    )
    graph = helper.make_graph(
        [
            node("Shape", ["x"], ["size"], start=1, end=3),
            node("Expand", ["zero", "size"], ["h_0"]),
            node("Scan", ["h_0", "x"], ["last", "out"], body=body, num_scan_inputs=1),
        ],
        "gru",
        [tensor_info("x", ["time", "batch", width])],
        [tensor_info("out", ["time", "batch", width]), tensor_info("last", ["batch", width])],
        initializer=initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def tensor_info(name: str, shape: list[str | int]) -> onnx.ValueInfoProto:
    """A float tensor of this shape."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def runner(file: Path, x: Tensor) -> Callable[[], list[Tensor]]:
    """Run a file on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x.numpy()}
    return lambda: [torch.as_tensor(output) for output in session.run(None, feed)]


def medians(runs: dict[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """The median time of each, in milliseconds; taken in turn, so that a busy moment hits all."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeat + 3):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values[3:]) for name, values in times.items()}  # the first three warm up


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("steps", 200), ("batch", 4), ("hidden", 64), ("repeat", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")

    model = GRULoop(options.hidden).eval()
    x = torch.randn(options.steps, options.batch, options.hidden)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        ours, scan = Path(folder) / "ours.onnx", Path(folder) / "scan.onnx"
        start = time.perf_counter()
        dy2st.onnx.export(model, (x[:5],), ours, dynamic_shapes=({0: Dim("time"), 1: Dim("batch")},))
        exported = time.perf_counter() - start
        onnx.save(scan_model(model.cell, options.hidden), scan)

        runs = {"eager": lambda: model(x), "dy2st": runner(ours, x), "Scan by hand": runner(scan, x)}
        expected = model(x)
        for run in runs.values():
            torch.testing.assert_close(list(run()), list(expected), rtol=1e-4, atol=1e-5)
        taken = medians(runs, options.repeat)

    print(f"GRU cell, {options.steps} steps, batch {options.batch}, hidden {options.hidden}, one thread")
    for name, value in taken.items():
        print(f"{name:<14} {value:8.2f} ms")
    print(f"dy2st to Scan by hand: {taken['dy2st'] / taken['Scan by hand']:.2f}x its time (goal: at most 1.3)")
    print(f"eager to dy2st:        {taken['eager'] / taken['dy2st']:.2f}x its time (goal: at least 2.5)")
    print(f"export:                {exported:.1f} s")


if __name__ == "__main__":
    main()
