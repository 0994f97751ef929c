"""The inputs that a search may try: boundary values first, then changes of what there is; all from one seed.

A candidate gives each argument a tensor; dimensions of one name have one size in all of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import UsageError
from dy2st.input_spec import DimensionSpec, InputSpec
from dy2st.parity.call_form import CallForm
from dy2st.parity.inputs import InputSet
from dy2st.parity.program_sizes import declared_sizes

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Candidate = dict[str, torch.Tensor]

# None, one, two, and sizes unlike each other; in this order, so that what most models take comes first.
SIZES = (2, 3, 1, 0, 5, 8)
# What an argument is filled with; ints take the nearest that they have.
FILLS = (0.0, 1.0, -1.0, 1e3, -1e3, 1e-6, 1e6, "random", "ramp", "wide")
_LARGEST_SIZE = 64
_SPECIAL = (math.nan, math.inf, -math.inf)


@dataclass
class Space:
    """All candidates of one call: ``specs`` by the names of its tensors. All else is as ``form`` has it.

    ``numbers`` are tried as sizes and as values: those that the model's source names.

    Equal seeds give equal candidates, on every machine of one torch version.
    """

    form: CallForm
    specs: dict[str, InputSpec]
    seed: int = 0
    numbers: tuple[float, ...] = ()
    random: random.Random = field(init=False)
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311 - reproducible, and no secret
        self.generator = torch.Generator().manual_seed(self.seed)

    def as_set(self, name: str, candidate: Candidate) -> InputSet:
        """A candidate as the arguments of a call."""
        return self.form.filled(name, candidate)

    def of_set(self, inputs: InputSet) -> Candidate | None:
        """A set as a candidate, or None if it is none of this space."""
        found = self.form.tensors(inputs)
        return {name: found[name] for name in self.specs} if found and set(found) == set(self.specs) else None

    def dimensions(self) -> dict[str, tuple[int, int]]:
        """The least and the largest size of each dimension that has a name."""
        found: dict[str, tuple[int, int | None]] = {}
        for dimension in (d for spec in self.specs.values() for d in spec.dimensions if d.name):
            low, high = found.get(str(dimension.name), (0, None))
            ends = [end for end in (high, dimension.high) if end is not None]
            found[str(dimension.name)] = max(low, dimension.low or 0), min(ends, default=None)
        most = {name: max(_LARGEST_SIZE, 2 * low) for name, (low, _) in found.items()}
        return {
            name: (low, most[name] if high is None else min(most[name], high)) for name, (low, high) in found.items()
        }

    def empty(self, sets: Iterable[Candidate]) -> Iterator[tuple[str, Candidate]]:
        """For each dimension that may be 0 and is that in no set: usual sizes but for this one, with what has it."""
        seen = {name for each in sets for name, size in self._sizes_of(each).items() if size == 0}
        for name, (low, _) in self.dimensions().items():
            if low == 0 and name not in seen:
                which = next(key for key, spec in self.specs.items() if name in {d.name for d in spec.dimensions})
                yield which, self._filled({**self._usual_sizes(), name: 0}, dict.fromkeys(self.specs, "random"))

    def boundary(self) -> Iterator[Candidate]:
        """Every size with every value, all dimensions and all arguments alike; then one argument or size at a time."""
        bounds = self.dimensions()
        sizes = dict.fromkeys(tuple(min(max(s, low), high) for low, high in bounds.values()) for s in SIZES)
        for chosen, fill in itertools.product(sizes, FILLS):
            yield self._filled(dict(zip(bounds, chosen, strict=True)), dict.fromkeys(self.specs, fill))
        if len(self.specs) > 1:
            for name, fill in itertools.product(self.specs, FILLS):
                yield self._filled(self._usual_sizes(), {**dict.fromkeys(self.specs, "random"), name: fill})
        for name in bounds:
            for end in self._declared_ends(name):
                if end not in SIZES:
                    yield self._filled({**self._usual_sizes(), name: end}, dict.fromkeys(self.specs, "random"))
        yield from self._special()
        yield from self._named()

    def _special(self) -> Iterator[Candidate]:
        """NaN and infinity in one place, where a spec names no range."""
        for name, value in itertools.product(self._unbounded(), _SPECIAL):
            found = self._filled(self._usual_sizes(), dict.fromkeys(self.specs, "random"))
            if found[name].numel():
                found[name].view(-1)[-1] = value
                yield found

    def _unbounded(self) -> list[str]:
        specs = self.specs.items()
        return [
            name
            for name, spec in specs
            if getattr(torch, spec.dtype).is_floating_point and spec.low is None and not spec.choices
        ]

    def special(self, candidate: Candidate) -> Candidate:
        """A copy with NaN or infinity in one place, if there is one that may have it."""
        names = [name for name in self._unbounded() if candidate[name].numel()]
        if not names:
            return candidate
        name = self.random.choice(names)
        values = candidate[name].flatten().clone()
        values[self.random.randrange(len(values))] = self.random.choice(_SPECIAL)
        return {**candidate, name: values.reshape(candidate[name].shape)}

    def _named(self) -> Iterator[Candidate]:
        """The numbers of the source, and their neighbours, as values of one argument and as sizes."""
        random = dict.fromkeys(self.specs, "random")
        near = [value + step for value in self.numbers for step in (0.0, 1.0, -1.0)]
        for value, name in itertools.product(dict.fromkeys(near), self.specs):
            yield self._filled(self._usual_sizes(), {**random, name: value})
        bounds = self.dimensions()
        for size, name in itertools.product(dict.fromkeys(near), bounds):
            low, high = bounds[name]
            if size == int(size) and low <= size <= high and size not in SIZES:
                for fill in (1.0, -1.0, "random"):
                    yield self._filled({**self._usual_sizes(), name: int(size)}, dict.fromkeys(self.specs, fill))

    def _declared_ends(self, name: str) -> list[int]:
        """The bounds of a dimension that its specs name; a model may do something else just there."""
        ends = self.dimensions()[name]
        declared = {(d.low, d.high) for spec in self.specs.values() for d in spec.dimensions if d.name == name}
        return [end for end in ends if any(end in pair for pair in declared)]

    def _usual_sizes(self) -> dict[str, int]:
        return {name: min(max(3, low), high) for name, (low, high) in self.dimensions().items()}

    def changed(self, candidate: Candidate, step: float | None = None) -> Candidate:
        """A copy with one thing different: a size or the values of one argument; by ``step``, if there is one."""
        bounds = self.dimensions()
        if bounds and self.random.random() < 0.15:  # noqa: PLR2004 - sizes matter less often than values
            return self._resized(candidate, self.random.choice(list(bounds)))
        names = [name for name, tensor in candidate.items() if tensor.numel()]
        if not names:
            return self._resized(candidate, self.random.choice(list(bounds))) if bounds else dict(candidate)
        name = self.random.choice(names)
        return {**candidate, name: self._perturbed(self.specs[name], candidate[name], step)}

    def fresh(self, kinds: Sequence[str] = ("random", "wide")) -> Candidate:
        """Something at random: sizes up to eight, mostly, and values of one of the kinds for each argument."""
        sizes = {}
        for name, (low, high) in self.dimensions().items():
            sizes[name] = self.random.randint(low, high if self.random.random() < 0.2 else min(high, max(low, 8)))  # noqa: PLR2004
        return self._filled(sizes, {name: self.random.choice(kinds) for name in self.specs})

    def on_grid(self, candidate: Candidate, step: float) -> Candidate:
        """The same with its floats at the nearest multiples of ``step``."""
        return {
            name: self._within(self.specs[name], (value.double() / step).round() * step, value.dtype)
            if value.is_floating_point()
            else value
            for name, value in candidate.items()
        }

    def stepped(self, candidate: Candidate, step: float) -> Candidate:
        """A copy with one element or all of one argument moved by a few times ``step``, if there is a float in it."""
        names = [name for name, value in candidate.items() if value.numel() and value.is_floating_point()]
        if not names:
            return candidate
        name = self.random.choice(names)
        values = candidate[name].double().flatten()
        values[self._elements(values.numel())] += step * self.random.choice((-4, -1, 1, 4))
        shape = candidate[name].shape
        return {**candidate, name: self._within(self.specs[name], values.reshape(shape), candidate[name].dtype)}

    def moved(self, before: Candidate, after: Candidate, factor: float) -> Candidate | None:
        """``factor`` times as far from ``before`` as ``after`` is; None if they differ in more than float values."""
        found = {}
        for name, old in before.items():
            new = after[name]
            if old.shape != new.shape:
                return None
            if old.is_floating_point() and not torch.equal(old, new):
                old64 = old.double()
                new = self._within(self.specs[name], old64 + factor * (new.double() - old64), old.dtype)
            found[name] = new
        return found

    def _sizes_of(self, candidate: Candidate) -> dict[str, int]:
        return {
            str(dimension.name): candidate[name].shape[axis]
            for name, spec in self.specs.items()
            for axis, dimension in enumerate(spec.dimensions)
            if dimension.name
        }

    def _resized(self, candidate: Candidate, which: str) -> Candidate:
        low, high = self.dimensions()[which]
        sizes = self._sizes_of(candidate)
        ends = (*SIZES, *self._declared_ends(which), 2 * sizes[which])
        step = self.random.choice([-1, 1, *(size - sizes[which] for size in ends)])
        sizes[which] = min(max(sizes[which] + step, low), high)
        found = self._filled(sizes, dict.fromkeys(self.specs, "random"))
        for name, tensor in found.items():
            shared = tuple(slice(0, min(a, b)) for a, b in zip(tensor.shape, candidate[name].shape, strict=True))
            tensor[shared] = candidate[name][shared]
        return found

    def _filled(self, sizes: dict[str, int], fills: dict[str, Any]) -> Candidate:
        return {name: self._fill(spec, sizes, fills[name]) for name, spec in self.specs.items()}

    def _fill(self, spec: InputSpec, sizes: dict[str, int], fill: Any) -> torch.Tensor:
        shape = [sizes[str(d.name)] if d.name else int(d.size or 0) for d in spec.dimensions]
        dtype: torch.dtype = getattr(torch, spec.dtype)
        if spec.choices or dtype is torch.bool:
            values = torch.tensor(spec.choices or (0.0, 1.0), dtype=torch.float64)
            if isinstance(fill, float):
                return values[int((values - fill).abs().argmin())].expand(shape).clone().to(dtype)
            return values[torch.randint(0, len(values), shape, generator=self.generator)].to(dtype)
        if isinstance(fill, float):
            return self._within(spec, torch.full(shape, fill, dtype=torch.float64), dtype)
        count = math.prod(shape)
        if fill == "ramp":
            return self._within(spec, torch.arange(count, dtype=torch.float64).reshape(shape), dtype)
        if spec.low is not None and spec.high is not None:
            between = torch.rand(shape, generator=self.generator, dtype=torch.float64)
            return self._within(spec, spec.low + between * (spec.high - spec.low), dtype)
        if fill == "grid":
            steps = torch.randint(-16, 17, shape, generator=self.generator).double()
            return self._within(spec, steps / 4, dtype)
        values = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        scale = 10 ** self.random.uniform(-3, 2) if fill == "any" else {"random": 1.0, "wide": 30.0}[fill]
        return self._within(spec, values * scale, dtype)

    def _perturbed(self, spec: InputSpec, tensor: torch.Tensor, by: float | None = None) -> torch.Tensor:
        dtype = tensor.dtype
        if spec.choices or dtype is torch.bool:
            values = torch.tensor(spec.choices or (0.0, 1.0), dtype=torch.float64)
            found = tensor.clone().flatten()
            where = self._elements(found.numel())
            found[where] = values[self.random.randrange(len(values))].to(dtype)
            return found.reshape(tensor.shape)
        values = tensor.to(torch.float64, copy=True).flatten()
        where = self._elements(values.numel())
        if by is not None and self.random.random() < 0.3:  # noqa: PLR2004 - what is linear needs no more
            values[where] += by * self.random.choice((-1, 1))
            return self._within(spec, values.reshape(tensor.shape), dtype)
        step = 10.0 ** self.random.uniform(-3, 2) * self.random.choice((-1, 1))
        if not dtype.is_floating_point:
            step = max(1, round(abs(step) / 10)) * math.copysign(1, step)
        change = self.random.randrange(6)
        if change == 0:
            values[where] = values[where] * self.random.choice((0.1, 0.5, 2.0, 10.0, -1.0))
        elif change == 1:
            values[where] = self.random.choice(
                (0.0, 1.0, -1.0, step, float(values[self.random.randrange(len(values))]), *self.numbers)
            )
        elif change == 2:  # noqa: PLR2004 - the number of a kind of change
            values[where] += step * torch.randn(len(values[where]), generator=self.generator, dtype=torch.float64)
        else:
            values[where] += step
        return self._within(spec, values.reshape(tensor.shape), dtype)

    def _elements(self, count: int) -> slice:
        """All elements, or one of them."""
        one = self.random.randrange(count)
        return self.random.choice((slice(None), slice(one, one + 1)))

    @staticmethod
    def _within(spec: InputSpec, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Values in float64 as what the spec allows."""
        if spec.choices:
            known = torch.tensor(spec.choices, dtype=torch.float64)
            return known[(values[..., None] - known).abs().argmin(-1)].to(dtype)
        if dtype.is_complex:
            return values.to(dtype)
        limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        # Integers are often indices: without a range, those that example_tensors makes.
        default = (limits.min, limits.max) if dtype.is_floating_point else (0, 9)
        low, high = (spec.low, spec.high) if spec.low is not None else default
        values = values.nan_to_num().clamp(low, high)
        return values.to(dtype) if dtype.is_floating_point else values.round().to(dtype)


def space_of_examples(model: Any, sets: Sequence[InputSet], seed: int, program: ExportedProgram | None = None) -> Space:
    """The space that example sets span: ints stay between those seen, Python values are those of the first set.

    Sizes are those that ``program`` takes, within the ranges that are declared for it; without a program, and where it
    can't be asked, those that differ between the sets are free.

    Raises:
        UsageError: there is no tensor among the arguments.
    """
    form = CallForm.of(model, sets[0])
    if not form.tensor_names:
        raise UsageError(
            "a search needs tensors, and there is none among the arguments",
            hint="say what to try: input_strategies in the target's module",
        )
    alike = [found for each in sets if (found := form.tensors(each)) is not None]
    declared = {} if program is None else declared_sizes(program, form.tensor_names)
    sizes: dict[tuple[int, ...], str] = {}
    specs = {}
    for name in form.tensor_names:
        values = [each[name] for each in alike]
        if name in declared:
            shape = zip(declared[name], values[0].shape, strict=True)
            dimensions = [DimensionSpec(size=size) if known is None else known for known, size in shape]
        else:
            dimensions = _seen_sizes(values, sizes)
        dtype = values[0].dtype
        bounds: tuple[float | None, float | None] = (None, None)
        full = [value for value in values if value.numel()]
        if full and not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool):
            bounds = (float(min(value.min() for value in full)), float(max(value.max() for value in full)))
        specs[name] = InputSpec(name, str(dtype).removeprefix("torch."), tuple(dimensions), *bounds)
    return Space(form, specs, seed)


def _seen_sizes(values: Sequence[torch.Tensor], sizes: dict[tuple[int, ...], str]) -> list[DimensionSpec]:
    """The dimensions of one argument; ``sizes`` has the names of those that differ, by all their sizes."""
    found = []
    for axis in range(values[0].dim()):
        seen = tuple(value.shape[axis] for value in values)
        if len(set(seen)) == 1:
            found.append(DimensionSpec(size=seen[0]))
        else:  # sizes that have always been equal are one
            found.append(DimensionSpec(name=sizes.setdefault(seen, f"d{len(sizes)}")))
    return found
