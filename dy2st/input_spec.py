"""Input specs such as ``x=f32[batch:1..64,3]:0..1``: their grammar, and example tensors made from them.

    spec       = [name "="] dtype "[" [dimension {"," dimension}] "]" [":" (range | choices)]
    dimension  = size | name [":" range]         a name is a dynamic dimension; the same name is the same size
    range      = low ".." high                   both ends included
    choices    = "{" number {"," number} "}"

On the command line a Python value may stand in a spec's place: ``k=5``, ``mode="max"``, ``mask=None``.

After the bracket a range bounds the values, or choices list them. The dtypes are those of jaxtyping's shorthand
(``f32``, ``i64``, ``bool``) and torch's own names (``float32``). Importing this module imports no torch.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dy2st.errors import InputSpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "bool": "bool",
    "c64": "complex64",
    "c128": "complex128",
}

# Sizes for the dynamic dimensions of the example sets: unlike each other, and the first is neither 0 nor 1, which
# torch.export would take for constants. Dimensions take them in turn, so that two of one set differ as well.
_SIZES = (4, 6, 3, 2)
_LARGEST = 2**63 - 1  # torch's sizes are int64
# What the sets' float values are multiplied by: small, large, all zero, none positive.
_SCALES = (1.0, 10.0, 0.0, -1.0)
SET_COUNT = len(_SCALES)

_NAMED = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>\.\.|[=\[\],:{}]))")


@dataclass(frozen=True)
class DimensionSpec:
    """One dimension: a fixed ``size``, or a ``name`` (dynamic) with optional bounds."""

    size: int | None = None
    name: str | None = None
    low: int | None = None
    high: int | None = None

    def text(self) -> str:
        """The dimension as it is written."""
        bounds = "" if self.low is None else f":{self.low}..{self.high}"
        return str(self.size) if self.name is None else f"{self.name}{bounds}"


@dataclass(frozen=True)
class InputSpec:
    """One input: its name (None: by position), torch dtype name, dimensions, and optional bounds of its values.

    ``choices`` are all the values that there are; the bounds are then the least and the greatest of them.
    """

    name: str | None
    dtype: str
    dimensions: tuple[DimensionSpec, ...]
    low: float | None = None
    high: float | None = None
    choices: tuple[float, ...] = ()

    def text(self) -> str:
        """The spec as it is written, without its name."""
        short = next((short for short, name in DTYPES.items() if name == self.dtype), self.dtype)
        sizes = ",".join(each.text() for each in self.dimensions)
        bounds = "" if self.low is None else f":{self.low:g}..{self.high:g}"
        values = f":{{{','.join(f'{each:g}' for each in self.choices)}}}" if self.choices else bounds
        return f"{short}[{sizes}]{values}"


@dataclass(frozen=True)
class ValueSpec:
    """One input that is a Python value: its name (None: by position), and the value."""

    name: str | None
    value: Any


class _Parser:
    """Reads one spec from left to right; every error names the column (1-based)."""

    def __init__(self, text: str, hint: str) -> None:
        self.text, self.hint = text, hint
        self.at = 0

    def fail(self, expected: str) -> InputSpecError:
        found = "the end" if self.at >= len(self.text.rstrip()) else repr(self.text[self.at :].strip()[:12])
        return InputSpecError(
            f"input spec {self.text!r}: expected {expected} at column {self.at + 1}, found {found}", hint=self.hint
        )

    def take(self, kind: str, value: str | None = None) -> str | None:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match[kind] is None or (value is not None and match[kind] != value):
            return None
        self.at = match.end()
        return match[kind]

    def need(self, kind: str, value: str | None, expected: str) -> str:
        found = self.take(kind, value)
        if found is None:
            raise self.fail(expected)
        return found

    def range(self) -> tuple[float, float]:
        low = float(self.need("number", None, "a number"))
        self.need("mark", "..", "'..'")
        high = float(self.need("number", None, "a number"))
        if high < low:
            raise InputSpecError(f"input spec {self.text!r}: the range {low:g}..{high:g} is empty")
        return low, high

    def choices(self) -> tuple[float, ...]:
        """The numbers up to the closing brace."""
        found = [float(self.need("number", None, "a number"))]
        while self.take("mark", ","):
            found.append(float(self.need("number", None, "a number")))
        self.need("mark", "}", "',' or '}'")
        return tuple(found)

    def dimension(self) -> DimensionSpec:
        size = self.take("number")
        if size is not None:
            if not size.isdigit() or int(size) > _LARGEST:
                raise InputSpecError(f"input spec {self.text!r}: {size} is no size")
            return DimensionSpec(size=int(size))
        name = self.need("name", None, "a size or a name")
        if self.take("mark", ":") is None:
            return DimensionSpec(name=name)
        low, high = self.range()
        if low < 0 or low != int(low) or high != int(high) or high > _LARGEST:
            raise InputSpecError(f"input spec {self.text!r}: {low:g}..{high:g} are no sizes")
        return DimensionSpec(name=name, low=int(low), high=int(high))

    def spec(self) -> InputSpec:
        first = self.need("name", None, "a name or a dtype")
        name = None
        if self.take("mark", "="):
            name, first = first, self.need("name", None, "a dtype")
        dtype = DTYPES.get(first, first)
        if dtype not in DTYPES.values():
            raise InputSpecError(
                f"input spec {self.text!r}: unknown dtype {first!r}", hint=f"one of {', '.join(DTYPES)}"
            )
        self.need("mark", "[", "'['")
        dimensions: list[DimensionSpec] = []
        if self.take("mark", "]") is None:
            dimensions.append(self.dimension())
            while self.take("mark", ","):
                dimensions.append(self.dimension())
            self.need("mark", "]", "',' or ']'")
        bounds: tuple[float | None, float | None] = (None, None)
        choices: tuple[float, ...] = ()
        if self.take("mark", ":"):
            choices = self.choices() if self.take("mark", "{") else ()
            bounds = (min(choices), max(choices)) if choices else self.range()
        if self.text[self.at :].strip():
            raise self.fail("the end")
        self.require_values(dtype, *bounds)
        return InputSpec(name, dtype, tuple(dimensions), *bounds, choices)

    def require_values(self, dtype: str, low: float | None, high: float | None) -> None:
        """Values beyond what the dtype has would come out as others."""
        if low is None or high is None:
            return
        least, greatest = _range_of(dtype)
        if not least <= low <= high <= greatest:
            raise InputSpecError(
                f"input spec {self.text!r}: {low:g}..{high:g} is beyond {dtype}, which has {least:g} to {greatest:g}"
            )


def _range_of(dtype: str) -> tuple[float, float]:
    """The least and the greatest value of a dtype."""
    if dtype == "bool":
        return 0, 1
    bits = int(re.sub(r"\D", "", dtype))
    if dtype.startswith("uint"):
        return 0, 2**bits - 1
    if dtype.startswith("int"):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    greatest = 65504.0 if dtype == "float16" else 3.38e38 if dtype in ("bfloat16", "float32", "complex64") else 1.79e308
    return -greatest, greatest


def parse_input_spec(text: str) -> InputSpec:
    """Parse one spec, for instance ``x=f32[batch,3]``.

    Raises:
        InputSpecError: it does not parse; the message names the column.
    """
    return _Parser(text, "x=f32[batch,3] or ids=i64[batch,length]:0..99").spec()


def parse_input(text: str) -> InputSpec | ValueSpec:
    """A spec, or a Python value: ``k=5``, ``mode="max"``, ``mask=None``, ``sizes=(2, 3)``.

    Raises:
        InputSpecError: it is neither.
    """
    named = _NAMED.match(text)
    name, value = (named[1], text[named.end() :]) if named else (None, text)
    try:
        return ValueSpec(name, ast.literal_eval(value.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    if re.fullmatch(r"\s*[A-Za-z_]\w*\s*", value) and value.strip() not in (*DTYPES, *DTYPES.values()):
        wanted = f'{name or "mode"}="{value.strip()}"'
        raise InputSpecError(
            f"input spec {text!r}: {value.strip()} is no dtype, and no Python value",
            hint=f"a text is --input '{wanted}'",
        )
    return _Parser(text, "").spec()


def bounds_by_name(specs: Sequence[InputSpec]) -> dict[str, tuple[int | None, int | None]]:
    """The bounds of every dynamic dimension, in order of first appearance.

    Raises:
        InputSpecError: one name has two different ranges.
    """
    found: dict[str, tuple[int | None, int | None]] = {}
    for spec in specs:
        for dimension in spec.dimensions:
            if dimension.name is None:
                continue
            given = (dimension.low, dimension.high)
            known = found.setdefault(dimension.name, given)
            if known == (None, None):
                found[dimension.name] = given
            elif given not in ((None, None), known):
                raise InputSpecError(
                    f"dimension {dimension.name!r} has two ranges: {known[0]}..{known[1]} and {given[0]}..{given[1]}"
                )
    return found


def dynamic_shapes(specs: Sequence[InputSpec]) -> dict[int, dict[int, Any]]:
    """For each spec with dynamic dimensions, by its position: ``{dimension: torch.export.Dim}``."""
    from torch.export import Dim

    dims = {name: Dim(name, min=low, max=high) for name, (low, high) in bounds_by_name(specs).items()}
    found = {}
    for position, spec in enumerate(specs):
        dynamic = {index: dims[d.name] for index, d in enumerate(spec.dimensions) if d.name is not None}
        if dynamic:
            found[position] = dynamic
    return found


def example_tensors(specs: Sequence[InputSpec], number: int) -> list[torch.Tensor]:
    """The tensors of example set ``number`` (0 to ``SET_COUNT - 1``), reproducible: sizes and values differ by set."""
    import torch

    generator = torch.Generator().manual_seed(number)
    sizes = {}
    for position, (name, (low, high)) in enumerate(bounds_by_name(specs).items()):
        size = _SIZES[(number + position) % len(_SIZES)]
        sizes[name] = max(low or 0, size if high is None else min(high, size))
    tensors = []
    for spec in specs:
        shape = [int((d.size if d.name is None else sizes[d.name]) or 0) for d in spec.dimensions]
        try:
            tensors.append(_values(spec, shape, number, generator))
        except (RuntimeError, MemoryError) as error:  # the system has not so much memory
            sized = ",".join(map(str, shape))
            raise InputSpecError(
                f"input spec {spec.name or ''}={spec.dtype}[{sized}]: a tensor of this size can't be made here"
            ) from error
    return tensors


def _values(spec: InputSpec, shape: list[int], number: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.choices:
        chosen = torch.randint(0, len(spec.choices), shape, generator=generator)
        return torch.tensor(spec.choices, dtype=torch.float64)[chosen].to(dtype)
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < (0.5, 0.9, 0.0, 1.0)[number % SET_COUNT]
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = (0, 9) if spec.low is None or spec.high is None else (int(spec.low), int(spec.high))
        return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
    if spec.low is not None and spec.high is not None:
        return (torch.rand(shape, generator=generator) * (spec.high - spec.low) + spec.low).to(dtype)
    values = torch.randn(shape, generator=generator)
    scale = _SCALES[number % SET_COUNT]
    return ((values.abs() if scale < 0 else values) * scale).to(dtype)
