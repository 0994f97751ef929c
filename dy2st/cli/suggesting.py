"""Options that would give a target its inputs: with its parameters' own names, and what is known of their kinds.

That is known from the example inputs beside the model, else from annotations. This imports no torch.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dy2st.input_spec import DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dy2st.cli.target import Target
    from dy2st.input_spec import InputSpec
    from dy2st.parity.inputs import InputSet
    from dy2st.report.parity_report import ParityReport

_SHORT = {name: short for short, name in DTYPES.items()}
_VALUES = {"int": "5", "float": "0.5", "bool": "True", "str": '"text"'}
_TENSORS = {"LongTensor": "i64", "IntTensor": "i32", "BoolTensor": "bool", "DoubleTensor": "f64", "HalfTensor": "f16"}
# jaxtyping's: Float[Tensor, "batch 3"].
_SHAPED = re.compile(r"\b(Float|Int|Bool|UInt|Float16|Float32|Float64|Int32|Int64)\[[^,\]]*,\s*['\"]([^'\"]*)['\"]")
_KINDS = {"float": "f32", "int": "i64", "uint": "u8", "bool": "bool"}
_ANYTHING = "f32[batch,3]"


def inputs_hint(specs: str) -> str:
    """The ways to give a target its inputs; ``specs`` are the options for its parameters, if it has any."""
    return f"{f'{specs}, ' if specs else ''}--inputs FILE, or a function example_inputs() beside the model"


def suggestion(target: Target) -> str:
    """``--input 'x=f32[3,4]' --input k=5``: an option for each parameter that has no default."""
    from dy2st.parity.inputs import signature_of

    signature = signature_of(target.model)
    if signature is None:
        return options([("x", "")])
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each for each in signature.parameters.values() if each.default is each.empty and each.kind not in kinds]
    known = _of_examples(list(signature.parameters), getattr(target.module, "example_inputs", None))
    return options(((each.name, _text(each.annotation)) for each in needed), known)


def options(parameters: Iterable[tuple[str, str]], known: Mapping[str, str] | None = None) -> str:
    """The same of names and the texts of their annotations; ``known`` are specs by name."""
    specs = [f"{name}={(known or {}).get(name) or spec_for(annotation)}" for name, annotation in parameters]
    return " ".join(f"--input {each}" if re.fullmatch(r"[\w.=-]+", each) else f"--input '{each}'" for each in specs)


def with_ranges(report: ParityReport, given: Sequence[InputSet], specs: Mapping[str, InputSpec]) -> ParityReport:
    """A report on sets that were made from ``specs``; where eager rejects one, with a range of sizes to try."""
    rejected = [each.name for each in report.inputs if each.problem.startswith("eager itself raises")]
    taken = [each for each in given if each.name not in rejected]
    for name, spec in specs.items() if rejected else ():
        shapes = [each.kwargs[name].shape for each in taken]
        ranged = tuple(
            replace(size, low=min((shape[axis] for shape in shapes), default=1), high=64)
            if size.name is not None and size.low is None
            else size
            for axis, size in enumerate(spec.dimensions)
        )
        if ranged != spec.dimensions:
            said = f"--input '{name}={replace(spec, dimensions=ranged).text()}'"
            inputs = [
                replace(each, problem=f"{each.problem} (instead: the sizes that it takes, as in {said})")
                if each.name in rejected
                else each
                for each in report.inputs
            ]
            return replace(report, inputs=tuple(inputs))
    return report


def spec_for(annotation: str) -> str:
    """What a parameter with this annotation may be given."""
    shaped = _SHAPED.search(annotation)
    if shaped is not None:
        kind = shaped[1].lower()
        sizes = [each for each in shaped[2].split() if re.fullmatch(r"[A-Za-z_]\w*|\d+", each)]
        if len(sizes) == len(shaped[2].split()):
            return f"{_SHORT.get(kind) or _KINDS.get(kind, 'f32')}[{','.join(sizes)}]"
    words = re.findall(r"\w+", annotation)
    for word in words:
        if word in _TENSORS:
            return f"{_TENSORS[word]}[batch,3]"
    if "Tensor" in words:
        return _ANYTHING
    return next((_VALUES[word] for word in words if word in _VALUES), _ANYTHING)


def _text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "") or str(annotation)


def _of_examples(names: list[str], given: Any) -> dict[str, str]:
    """What the first example set has, by parameter; nothing where it can't be had."""
    first = None
    with contextlib.suppress(Exception), contextlib.redirect_stdout(sys.stderr):
        made = given() if callable(given) else given
        first = next(iter(made.values() if isinstance(made, Mapping) else made), None)
    values = dict(zip(names, first, strict=False)) if isinstance(first, (list, tuple)) else first
    pairs = values.items() if isinstance(values, Mapping) else ()
    return {str(name): text for name, value in pairs if (text := _of_value(value))}


def _of_value(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype = _SHORT.get(str(value.dtype).removeprefix("torch."), "")
        return f"{dtype}[{','.join(map(str, value.shape))}]" if dtype else ""
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value) if isinstance(value, (int, float, bool, type(None))) else ""
