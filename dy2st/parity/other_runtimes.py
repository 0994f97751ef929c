"""An ONNX file on other runtimes than onnxruntime: onnx's reference evaluator, and OpenVINO.

What a runtime has no operator for is said by name before it runs: the operator, its domain, and the opset since which
it is what the file means.

Source: https://onnx.ai/onnx/api/reference.html, https://docs.openvino.ai/2026/openvino-workflow/running-inference.html.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from dy2st.embedded.file_outputs import told_outputs
from dy2st.errors import OnnxError, UsageError
from dy2st.parity.stages import OnnxSession, as_value, state_names, state_outputs

# Of each runtime the package that it needs beside dy2st's own, which an extra of that name installs.
RUNTIMES = {"reference": "", "openvino": "openvino"}
# OpenVINO names the operators that it lacks with the version of their opset.
_LACKING = re.compile(r"No conversion rule found for operations: (.*)")
# The recurrent operators, and which of their inputs are lengths.
_RECURRENT, _LENGTHS = frozenset(("GRU", "LSTM", "RNN")), 4
_ONNX = ("", "ai.onnx")


def installed_runtimes(wanted: Iterable[str], tell: Callable[[str], None]) -> list[str]:
    """Those of the wanted runtimes that can run here; ``tell`` is told of each other one, in a line.

    Raises:
        UsageError: there is no runtime of a name.
    """
    found = []
    for name in wanted:
        if name not in RUNTIMES:
            raise UsageError(f"there is no runtime {name!r}", hint=f"one of {', '.join(RUNTIMES)}")
        package = RUNTIMES[name]
        if package and importlib.util.find_spec(package) is None:
            tell(f"{name} is left out: it is not installed (pip install 'dy2st[{package}]')")
        else:
            found.append(name)
    return found


class OtherSession(OnnxSession):
    """A file on another runtime, fed and read as on onnxruntime.

    Raises:
        OnnxError: the runtime lacks operators of the file, or can't load it.
    """

    def __init__(self, path: str | Path, runtime: str) -> None:
        model = onnx.load(str(path))
        weights = {each.name for each in model.graph.initializer}
        self.runtime = runtime
        self.input_names = [each.name for each in model.graph.input if each.name not in weights]
        self.output_names = [each.name for each in model.graph.output]
        metadata = {each.key: each.value for each in model.metadata_props}
        self.state_names, self.following = state_names(metadata), state_outputs(metadata)
        self.told = told_outputs(metadata)
        run = {"reference": _on_reference, "openvino": _on_openvino}[runtime]
        self._run = run(model, str(path))

    def values(self, feed: dict[str, torch.Tensor]) -> list[Any]:
        """Run on tensors by graph input name: for each output a tensor, a list of tensors, a text, or None."""
        arrays = {}
        for name, given in feed.items():
            tensor = torch.view_as_real(given) if given.is_complex() else given
            if tensor.dtype is torch.bfloat16:
                raise OnnxError(f"{self.runtime} is given numpy's arrays, which have no bfloat16")
            arrays[name] = tensor.contiguous().numpy()
        return [as_value(each) for each in self._run(arrays)]


def _on_reference(model: onnx.ModelProto, _: str) -> Any:
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import load_op

    versions = {each.domain: each.version for each in model.opset_import}
    lacking = _with_lengths(model, versions)
    own = {(function.domain, function.name) for function in model.functions}
    for node in _nodes(model.graph):
        if (node.domain, node.op_type) in own:
            continue
        try:
            load_op(node.domain if node.domain != "ai.onnx" else "", node.op_type, versions.get(node.domain))
        except Exception:  # noqa: BLE001 - it has several errors for what it lacks, one of them RuntimeContextError
            schema = onnx.defs.has(node.op_type, node.domain)
            if not schema or not onnx.defs.get_schema(node.op_type, node.domain).has_function:  # type: ignore[attr-defined]
                lacking.append(_told(node.op_type, node.domain, versions))
    _require("reference", lacking)
    try:
        evaluator = ReferenceEvaluator(model)
    except Exception as error:
        raise OnnxError(f"reference can't load the file: {_first_line(error)}") from error

    def run(feed: dict[str, np.ndarray]) -> Sequence[Any]:
        with np.errstate(all="ignore"):
            return list(evaluator.run(None, feed))

    return run


def _on_openvino(model: onnx.ModelProto, path: str) -> Any:
    import openvino

    versions = {each.domain: each.version for each in model.opset_import}
    _require("openvino", _with_lengths(model, versions))
    try:
        read = openvino.Core().read_model(path)
        # Some processors would compute in bfloat16.
        compiled = openvino.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    except Exception as error:
        named = _LACKING.search(str(error))
        if named is not None:
            kinds = [each.strip().rsplit("-", 1)[0].rpartition(".") for each in named[1].split(",")]
            _require("openvino", [_told(kind, domain, versions) for domain, _, kind in kinds])
        raise OnnxError(f"openvino can't load the file: {_first_line(error)}") from error

    def run(feed: dict[str, np.ndarray]) -> Sequence[Any]:
        found = compiled(feed)
        return [found[place] for place in range(len(model.graph.output))]

    return run


def _with_lengths(model: onnx.ModelProto, versions: dict[str, int]) -> list[str]:
    """The recurrent operators that are given lengths, of which onnx 1.23 and OpenVINO 2026.4 take no notice."""
    return [
        _told(node.op_type, node.domain, versions, "sequence_lens of ")
        for node in _nodes(model.graph)
        if node.op_type in _RECURRENT and any(node.input[_LENGTHS : _LENGTHS + 1])
    ]


def _require(runtime: str, lacking: Sequence[str]) -> None:
    """Raise the error that names what is lacking, if something is."""
    if lacking:
        raise OnnxError(
            f"{runtime} lacks {', '.join(dict.fromkeys(lacking))}", hint="the file runs on onnxruntime as it is"
        )


def _told(kind: str, domain: str, versions: dict[str, int], part: str = "") -> str:
    """An operator in words: ``Optional (ai.onnx, since opset 15)``."""
    name = "ai.onnx" if domain in _ONNX else domain
    version = next((versions[each] for each in (_ONNX if domain in _ONNX else (domain,)) if each in versions), None)
    try:
        since = onnx.defs.get_schema(kind, version or 1, "" if domain in _ONNX else domain).since_version
    except onnx.defs.SchemaError:
        return f"{part}{kind} ({name})"
    return f"{part}{kind} ({name}, since opset {since})"


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
            for inner in attribute.graphs:
                yield from _nodes(inner)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
