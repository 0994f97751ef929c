"""A program run on onnxruntime, in the place of its graph: a function of its inputs that gives its results.

Parameters, buffers and whatever else the code reads are inputs of the file, as they are inputs of the program, and each
run is given their memory as it is. So a weight that was changed in place, replaced or loaded is seen, however it was
done. What that costs is what onnxruntime would do with constants ahead of time: fold them, and bring the weights of
products and convolutions into the order that its kernels like best. A copy of the weights in the file would have to be
known to be what they are; torch's version counters don't tell (``weight.data.mul_(2)`` leaves them as they are).

What the program writes to its inputs is a result of the file, and written when the run is over. So a run that fails has
changed nothing.

The first run of each program is compared with the program, run as Python on the same tensors.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.capture.program import one_at_a_time
from dy2st.derivatives.random_draws import is_draw
from dy2st.errors import BackendError, ParityError
from dy2st.onnx.exporting import export as export_onnx
from dy2st.parity.compare import compare
from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import flat_outputs
from dy2st.parity.reductions import largest_sum
from dy2st.parity.stages import one_line
from dy2st.sizes.lowering import place_of
from dy2st.static.gradient_flow import gradients_wanted
from dy2st.static.lifting import Lifted, lifted
from dy2st.static.saved_tensors import overlap
from dy2st.static.session_values import DTYPES, Session
from dy2st.tracing.subgraph import graph_modules

NAME = "onnxruntime"
_NO_GRADIENTS = "call it under torch.no_grad(), or use the backend 'eager'"
Forward = Callable[..., Any]


@one_at_a_time
def on_onnxruntime(
    program: torch.export.ExportedProgram, inputs: Sequence[torch.Tensor | None], eager: Forward, *, writes: bool
) -> Forward:
    """The program on onnxruntime.

    ``inputs`` are the tensors that it was captured with, None where an input is the same in each call; ``eager`` runs
    it as Python. ``writes`` says whether it changes any of the tensors.

    Raises:
        BackendError: onnxruntime can't run it as eager does.
        OnnxError: it can't be written as ONNX.

    Raises (the function that it gives):
        BackendError: tensors share memory that is written to.
        ParityError: the first run gives something else than the program.
    """
    _require_supported(program.graph_module, inputs)
    made = lifted(program, [each is not None for each in inputs], writes=writes)
    if made.program is None:
        return eager
    names = [f"input_{i}" for i in range(len(made.inputs))]
    results = [f"result_{i}" for i in range(len(made.values))]
    model = export_onnx(made.program, input_names=names, output_names=results)
    session = Session(model, [isinstance(each, torch.Tensor) and each.is_complex() for each in made.values])
    return _Run(made, session, eager)


def _require_supported(module: fx.GraphModule, inputs: Sequence[torch.Tensor | None]) -> None:
    """Refuse what would not be what it is in eager.

    Raises:
        BackendError: see there.
    """
    if torch.is_grad_enabled():
        wanted = [each is not None and each.requires_grad for each in inputs]
        if any(wanted) and gradients_wanted(module, wanted):
            raise BackendError(f"the {NAME} backend does not differentiate", hint=_NO_GRADIENTS)
    for tensor in inputs:
        if tensor is None:
            continue
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise BackendError(f"the {NAME} backend takes no tensors of layout {tensor.layout}")
        if tensor.dtype not in DTYPES:
            raise BackendError(f"the {NAME} backend takes no tensors of {tensor.dtype}")
    for node in (node for each in graph_modules(module) for node in each.graph.nodes):
        _require_node(node)


def _require_node(node: fx.Node) -> None:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        raise BackendError(
            f"the {NAME} backend runs on the CPU, and the code works on {value.device}",
            hint="move the module and its arguments to the CPU, or use the backend 'eager'",
            location=place_of(node),
        )
    if node.op == "call_function" and is_draw(node):
        raise BackendError(
            f"random numbers are drawn, which the {NAME} backend would draw from another generator than torch's",
            hint="put the module into eval mode, or draw outside and pass them in",
            location=place_of(node),
        )


class _Run:
    """A program on onnxruntime, from its inputs to its flat results."""

    def __init__(self, made: Lifted, session: Session, eager: Forward) -> None:
        self._inputs, self._written, self._origins = made.inputs, made.written, made.origins
        self._session, self._eager = session, eager
        self._checking = threading.Lock()
        self._checked = False
        self._wrong = ""

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """The program's results; what it changes of its inputs is changed."""
        if self._written:
            _require_apart([values[i] for i in self._inputs], [values[i] for i in self._written])
        if self._checked:
            found = self._session.run([values[i] for i in self._inputs])
        else:
            with self._checking:
                found = self._compared(values)
        for i, new in zip(self._written, found, strict=False):
            values[i].copy_(new)
        return self._flat(values, found)

    def _flat(self, values: Sequence[Any], found: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        places = {"result": found, "input": values}
        return tuple(places[kind][each] if kind in places else each for kind, each in self._origins)

    def _compared(self, values: Sequence[Any]) -> list[torch.Tensor]:
        """The session's results, which are the program's.

        Raises:
            ParityError: they are not.
        """
        if not self._wrong:
            self._wrong, found = self._tried(values)
        if self._wrong:
            raise ParityError(
                f"{NAME} does not give what the program gives: {self._wrong}",
                hint="use the backend 'eager'; dy2st.check says where it begins",
            )
        self._checked = True
        return found

    def _tried(self, values: Sequence[Any]) -> tuple[str, list[torch.Tensor]]:
        """How the session's results differ from the program's, which is run on copies of what it changes; and they."""
        copies = list(values)
        for i in self._written:
            copies[i] = values[i].detach().clone()
        failed: Exception | None = None
        found: list[torch.Tensor] = []
        try:
            found = self._session.run([values[i] for i in self._inputs])
        except Exception as error:  # noqa: BLE001  onnxruntime's exceptions have no common base
            failed = error
        try:
            with torch.no_grad():
                expected = self._eager(*copies)
        except Exception as error:
            if failed is not None:
                raise
            return f"the program raises {one_line(error)}", found
        if failed is not None:
            return one_line(failed), found
        return self._difference(values, expected, [copies[i] for i in self._written], found), found

    def _difference(
        self, values: Sequence[Any], expected: Sequence[Any], changed: Sequence[Any], found: Sequence[torch.Tensor]
    ) -> str:
        # Inputs and constants are given back as they are.
        computed = [(i, each) for i, (kind, each) in enumerate(self._origins) if kind == "result"]
        want = flat_outputs([*changed, *(expected[i] for i, _ in computed)])
        got = flat_outputs([*found[: len(changed)], *(found[each] for _, each in computed)])
        terms = functools.partial(largest_sum, self._eager, InputSet("the first call", tuple(values)))
        result = compare(NAME, want, got, terms=terms)
        return "; ".join(f"{each.output}: {each.message}" for each in result.differences)


def _require_apart(tensors: Sequence[torch.Tensor], written: Sequence[torch.Tensor]) -> None:
    """Refuse a call in which something is read or written by two names.

    Raises:
        BackendError: it is.
    """
    storages = [each.untyped_storage().data_ptr() for each in tensors]
    if len(set(storages)) == len(storages):
        return
    for i, one in enumerate(tensors):
        others = [each for j, each in enumerate(tensors) if j != i and storages[j] == storages[i]]
        if any(one is each for each in written) and any(overlap(one, each) for each in others):
            raise BackendError(
                f"tensors share memory that the code writes to, which the {NAME} backend can't follow",
                hint="pass a copy of one of them, or use the backend 'eager'",
            )
