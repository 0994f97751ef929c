"""Comprehensions whose elements change what the next one reads: each is the loop that appends its elements.

The law: ``[f(x) for x in xs if c]`` is ``made = []; for x in xs: if c: made.append(f(x))``, state included.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor, nn
from torch.export import Dim

DYNAMIC = ({0: Dim.DYNAMIC},)


def rows(*sizes: int) -> list[tuple[Tensor]]:
    """Matrices of three columns."""
    generator = torch.Generator().manual_seed(0)
    return [(2 * torch.randn(size, 3, generator=generator),) for size in sizes]


class Counter:
    """Keeps a number and a list."""

    def __init__(self) -> None:
        self.n = 0
        self.log: list[Tensor] = []

    def step(self, x: Tensor) -> Tensor:
        """A function of ``x`` and of how often it was called."""
        self.n += 1
        self.log.append(x.sum())
        return x * self.n


class Leaky(nn.Module):
    """A neuron that keeps its membrane potential in a buffer."""

    mem: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mem", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        """One step: the spikes."""
        self.mem = 0.9 * self.mem + x
        spikes = (self.mem > 1).float()
        self.mem = self.mem - spikes
        return spikes


class Spiking(nn.Module):
    """Runs a neuron over the time steps of an input."""

    def __init__(self) -> None:
        super().__init__()
        self.neuron = Leaky()


class OfSteps(Spiking):
    """By an index."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Float32 [n, 3] to the spikes and the last potential."""
        self.neuron.mem = torch.zeros(3)
        return torch.stack([self.neuron(x[t]) for t in range(x.shape[0])]), self.neuron.mem


class Carried(Spiking):
    """By the rows; the potential goes on in the next call."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the spikes."""
        return torch.stack([self.neuron(step) for step in x])


class OfGenerator(Spiking):
    """By a generator expression that a builtin consumes."""

    def forward(self, x: Tensor) -> tuple[Any, Tensor]:
        """Float32 [n, 3] to the number of spikes."""
        self.neuron.mem = torch.zeros(3)
        total = sum(self.neuron(step) for step in x)
        return total, torch.stack(list(self.neuron(step) for step in x))  # noqa: C400


class UpToData(Spiking):
    """As often as the data says."""

    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, int]:
        """Float32 [6, 3] and int64 [] to the spikes of the first ``n`` steps."""
        self.neuron.mem = torch.zeros(3)
        out = [self.neuron(x[t]) for t in range(int(n.item()))]
        return torch.stack(out), len(out)


@pytest.mark.slow_for("OfGenerator")
@row(32)
@pytest.mark.parametrize("model", [OfSteps, Carried, OfGenerator])
def test_modules_with_state(model: type[nn.Module]) -> None:
    agree(model(), rows(4, 1, 7), DYNAMIC)


@row(32)
def test_modules_with_state_as_often_as_the_data_says() -> None:
    agree(UpToData(), [(rows(6)[0][0], torch.tensor(n)) for n in (3, 6, 1)])


@pytest.mark.slow
@row(32)
def test_state_of_objects_and_functions() -> None:
    def of_object(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        y = [counter.step(r) for r in x]
        return torch.stack(y), counter.n, torch.stack(counter.log)

    def of_function(x: Tensor) -> tuple[Any, ...]:
        h = torch.zeros(3)

        def step(r: Tensor) -> Tensor:
            nonlocal h
            h = torch.tanh(h + r)
            return h.clone()

        return torch.stack([step(r) for r in x]), h

    def of_list(x: Tensor) -> tuple[Any, ...]:
        seen: list[Tensor] = []

        def step(r: Tensor) -> Tensor:
            seen.append(r.sum())
            return r * len(seen)

        return torch.stack([step(r) for r in x]), torch.stack(seen)

    def of_variable(x: Tensor) -> tuple[Any, ...]:
        total = torch.zeros(())
        sums = [total := total + v for v in x[:, 0]]
        if sums[-1] > 0:
            total = total * 2
        return torch.stack(sums), total

    for model in (of_object, of_function, of_list, of_variable):
        agree(model, rows(4, 1, 7), DYNAMIC, paths=2)


@row(32)
def test_state_that_the_first_element_makes() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mem: Tensor | None = None

        def step(self, r: Tensor) -> Tensor:
            if self.mem is None:
                self.mem = torch.zeros_like(r)
            self.mem = 0.5 * self.mem + r
            return self.mem

        def forward(self, x: Tensor) -> Tensor:
            self.mem = None
            out = torch.stack([self.step(r) for r in x])
            self.mem = None
            return out

    agree(Lazy(), rows(4, 1, 7), DYNAMIC)


@pytest.mark.slow
@row(32)
def test_conditions_and_several_clauses() -> None:
    def condition(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        y = [counter.step(r) for r in x if r.sum() > 0 if r[0] > -1]
        return torch.stack(y).sum(0) if y else torch.zeros(3), counter.n

    def both_staged(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        y = [counter.step(r) * s for r in x if r[0] > 0 for s in x[:, 0] if s < 1]
        return len(y), counter.n, sum(y, torch.zeros(3))

    def one_staged(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        inner = [counter.step(r) * k for r in x for k in (1, 2)]
        outer = [counter.step(r) * k for k in (1, 2) for r in x]
        return torch.stack(inner), torch.stack(outer), counter.n

    def none_staged(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        y = [counter.step(r) for r in (x[0], -x[0], x[0] + 1) if r.sum() > 0]
        z = [k for k in range(4) if x[0, 0] > 1 if k % 2]
        return len(y), counter.n, len(z)

    def writes(x: Tensor) -> tuple[Any, ...]:
        place = torch.zeros(3)
        y = [place.add_(r).sum() for r in x if r.sum() > 0]
        return len(y), place

    for model in (condition, both_staged, one_staged, none_staged, writes):
        agree(model, rows(4, 1, 7, 5), DYNAMIC, paths=1)


@pytest.mark.slow
@row(32, 47)
def test_any_and_all_stop_at_the_element_that_decides() -> None:
    def some(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        found = any(counter.step(r).sum() > 3 for r in x)
        return found, counter.n

    def every(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        found = all(counter.step(r).sum() < 3 for r in x if r[0] > 0)
        return found, counter.n, sum(counter.log, torch.zeros(()))

    def nested(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        found = any(counter.step(r)[k] > 4 for r in x for k in (0, 2))
        again = any(counter.step(r)[k] > 9 for k in (0, 2) for r in x)
        return found, again, counter.n

    for model in (some, every, nested):
        agree(model, rows(4, 1, 7, 5), DYNAMIC, paths=1)
    agree(every, rows(3, 3, 3))  # of a static number, too


@pytest.mark.slow
@row(32)
def test_inside_of_branches_loops_and_comprehensions() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        out = torch.zeros(3)
        if x.sum() > 0:
            out = torch.stack([counter.step(r) for r in x]).sum(0)
        for r in x:
            out = out + torch.stack([counter.step(q) * r for q in x]).sum(0)
        sums = [sum([counter.step(q)[0] for q in x], torch.zeros(())) for _ in x]
        return out, counter.n, torch.stack(sums)

    agree(model, rows(4, 1, 3, 2), DYNAMIC)


@pytest.mark.slow
@row(32)
def test_generators_of_several_consumers() -> None:
    def steps(counter: Counter, x: Tensor) -> Any:
        return (counter.step(r) for r in x)

    def model(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        total = sum(steps(counter, x))
        for r in steps(counter, x):
            total = total + r
        return total, counter.n

    assert refuses(model, rows(4)[0], DYNAMIC).code == "D2S232"
    agree(model, rows(4, 4), paths=1)


@row(32)
def test_dicts_and_sets_whose_elements_change_the_state_are_refused() -> None:
    def of_dict(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        made = {i: counter.step(r) for i, r in enumerate(x)}
        return len(made), counter.n

    def of_condition(x: Tensor) -> tuple[Any, ...]:
        counter = Counter()
        made = {k: counter.step(r) for k, r in {"a": x[0], "b": x[1]}.items() if r.sum() > 0}
        return len(made), counter.n

    assert refuses(of_dict, rows(4)[0], DYNAMIC).code == "D2S233"
    assert refuses(of_condition, rows(4)[0], DYNAMIC).code == "D2S233"
