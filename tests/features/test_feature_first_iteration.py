"""Loops whose first iteration builds what the others change: it is taken out of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, row
from torch import Tensor, nn

import dy2st

GIVEN = [
    (torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [0.01] * 9, [5.0], [], [-3.0, 9.0, 2.0], [1.5, 0.2])
]


@dataclass
class Cache:
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    def update(self, key: Tensor, value: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        if len(self.keys) <= layer:
            self.keys.append(key)
            self.values.append(value)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key])
            self.values[layer] = torch.cat([self.values[layer], value])
        return self.keys[layer], self.values[layer]


class Decoder(nn.Module):
    """Greedy decoding with a cache that each layer fills in the first step."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(4, 12) for _ in range(2))
        self.out = nn.Linear(4, 5)
        self.embedding = nn.Embedding(5, 4)

    def step(self, x: Tensor, cache: Cache) -> Tensor:
        for i, layer in enumerate(self.layers):
            query, key, value = layer(x).chunk(3, -1)
            keys, values = cache.update(key, value, i)
            x = x + torch.softmax(query @ keys.T, -1) @ values
        return self.out(x)[-1].argmax()

    def forward(self, tokens: Tensor) -> Tensor:
        cache = Cache()
        x = self.embedding(tokens)
        while tokens.shape[0] < 8:
            token = self.step(x, cache)
            tokens = torch.cat([tokens, token[None]])
            if token == 3:
                break
            x = self.embedding(token[None])
        return tokens


@pytest.mark.slow
@row(20, 25, 30)
def test_a_cache_that_the_first_step_fills() -> None:
    prompts = [(torch.tensor(v),) for v in ([1, 2], [0, 1, 4, 2], [1] * 9, [1], [3, 3, 0], [4])]
    agree(Decoder(), prompts, (dyn(0),))


@row(8, 13, 17)
def test_a_tuple_of_state_with_breaks() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        n = 0
        while x.sum() > 1:
            if len(state) == 0:
                state = (x, x * 0)
                if x.max() > 4:
                    break
            a, b = state
            state = (b + x, a)
            x = x * 0.5
            n += 1
            if a.max() > 1.5:
                break
        else:
            n = n + 10
        return x + n

    agree(model, GIVEN, (dyn(0),), paths=4)


@row(10, 11)
def test_returns_from_the_first_iteration_and_from_others() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        n = 0
        while x.sum() > 1:
            if not state:
                state = (x, x * 0)
                if x.max() > 4:
                    return x - 1
            a, b = state
            state = (b + x, a)
            x = x * 0.5
            n += 1
            if a.max() > 1.5:
                return b
        return x + n

    agree(model, GIVEN, (dyn(0),), paths=4)


@pytest.mark.slow
@row(9, 24, 26)
def test_a_list_that_the_first_iteration_fills_in_a_for_loop() -> None:
    def model(x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        total = x.sum()
        for i in range(x.shape[0]):
            if not cache:
                cache.append(x[i])
                cache.append(x[i] * 2)
                continue
            cache[0] = cache[0] + x[i]
            cache[1] = torch.maximum(cache[1], cache[0])
            if cache[1] > 6:
                break
            total = total + cache[0] * cache[1] * i
        else:
            total = total * 2
        return total

    agree(model, GIVEN, (dyn(0),), paths=4)


@row(6, 16)
def test_the_first_of_enumerated_rows() -> None:
    def model(x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        for i, v in enumerate(x):
            if i == 0:
                cache.append(v)
                cache.append(v * 2)
            else:
                cache[0] = cache[0] + v
                cache[1] = torch.maximum(cache[1], cache[0])
        if x.shape[0] > 0:
            return cache[0] + cache[1] + v + i
        return x.sum()

    agree(model, GIVEN, (dyn(0),), paths=3)


@row(3, 8)
def test_a_loop_that_runs_at_least_once() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        n = 0
        while True:
            if not state:
                state = (x.sum(), x * 2)
            s, y = state
            state = (s * 0.5, y + s)
            n += 1
            if s.abs() < 1:
                break
        return state[1] + n

    agree(model, GIVEN, (dyn(0),), paths=2)


@row(8)
def test_a_jump_of_python_ends_the_first_iteration() -> None:
    def model(x: Tensor, once: bool = True) -> Tensor:
        state: Any = ()
        n = 0
        while x.sum() > 1:
            state = (x, *state) if len(state) < 2 else (x, state[0])
            x = x * 0.5
            n += 1
            if once:
                break
        return x + n

    agree(model, GIVEN, (dyn(0),), paths=2)


@row(5, 29)
def test_a_cell_that_makes_its_state_at_the_first_call() -> None:
    class Cell:
        def __init__(self) -> None:
            self.state: Any = ()

        def __call__(self, x: Tensor) -> Tensor:
            if not self.state:
                self.state = (x, x)
            a, b = self.state
            self.state = (a * 0.5 + x, b + a)
            return a + b

    def model(x: Tensor) -> Tensor:
        cell = Cell()
        y = x
        for _ in range(x.shape[0]):
            y = cell(y) * 0.5
        return y

    agree(model, GIVEN, (dyn(0),), paths=2)


@row(3, 5)
def test_inside_another_loop() -> None:
    def model(x: Tensor) -> Tensor:
        best = x.sum()
        for i in range(x.shape[0]):
            history: Any = ()
            y = x[i]
            while y > 1:
                history = (y, y * 0) if history == () else (history[1] + y, history[0])
                y = y * 0.5 - history[0] * 0.1
            best = torch.minimum(best, y)
        return best

    agree(model, GIVEN, (dyn(0),), paths=3)


@row(43)
def test_the_first_iteration_may_raise() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        while x.sum() > 1:
            if not state:
                if x.min() < -100:
                    raise ValueError("too small")
                state = (x, x + 1)
            else:
                state = (state[1], state[0] * 0.5)
            x = x * 0.5 - state[0] * 0.01
        return x

    agree(model, GIVEN, (dyn(0),), paths=3, raising=[(torch.tensor([-200.0, 400.0]),)])


def test_a_promised_number_of_iterations() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        while dy2st.at_most(12, x.sum() > 1):
            state = (x, x * 2) if not state else (state[1], state[0] * 0.5)
            x = x * 0.5 - state[0] * 0.01
        return x

    agree(model, GIVEN, (dyn(0),), paths=2)


@row(20)
def test_what_changes_its_rank_once() -> None:
    def model(x: Tensor) -> Tensor:
        total = torch.zeros(())
        n = 0
        while x.sum() > 1 and n < 10:
            total = total + x
            x = x * 0.5 + total * 0.01
            n += 1
        return x

    agree(model, GIVEN, (dyn(0),), paths=2)


@row(26)
def test_lists_that_keep_growing_stay_in_the_loop() -> None:
    def stack(x: Tensor) -> Tensor:
        left = [x.sum()]
        n = x.sum() * 0
        while left:
            v = left.pop()
            n = n + v
            if v > 1:
                left.append(v * 0.5 - 0.2)
                left.append(v * 0.25)
        return n

    def sums(x: Tensor) -> Tensor:
        out: list[Tensor] = []
        h = x.sum()
        for t in range(x.shape[0]):
            h = h * 0.5 + x[t]
            out = [*out, h]
        return torch.stack(out).sum() if x.shape[0] > 0 else h

    agree(stack, GIVEN, (dyn(0),), paths=2)
    agree(sums, GIVEN, (dyn(0),), paths=2)


@row(68)
def test_whether_the_first_iteration_takes_place_is_a_path() -> None:
    def model(x: Tensor) -> Tensor:
        state: Any = ()
        n = 0
        while x.sum() > 1:
            state = (x, *state) if len(state) < 2 else (x, state[0])
            x = x * 0.5
            n += 1
            if n > 0:
                break
        return x + n

    checked = dy2st.check(model, [(torch.tensor([3.0, 1.0]),)])
    assert checked.ok
    assert not checked.covered
    assert dy2st.check(model, [(torch.tensor([3.0, 1.0]),), (torch.tensor([0.1, 0.1]),)]).covered


@row(17)
def test_a_variable_that_the_first_iteration_gives_a_value_on_a_path_of_its_own() -> None:
    def by_counter(x: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(6):
            norm = x.norm()
            if i == 0:
                first = norm
            if norm < 0.3 * first:
                break
            x = x * 0.6
        return x, first

    def with_and(x: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(6):
            norm = x.norm()
            if i > 0 and norm < 0.3 * first:  # noqa: F821 - the first iteration gives it a value
                break
            if i == 0:
                first = norm
            x = x * 0.6
        return x, first

    inputs = [(torch.tensor(v),) for v in ([1.0, 2.0], [30.0, 4.0], [0.0, 0.0])]
    agree(by_counter, inputs)
    agree(with_and, inputs)


@row(17)
def test_a_variable_that_an_iteration_of_data_gives_a_value() -> None:
    def model(x: Tensor) -> Tensor:
        total = x * 0
        for i in range(4):
            if x[i % 2] > 1:
                seen = x * i
            if i > 2 - int(x[1]):
                total = total + seen
            x = x + 0.5
        return total

    inputs = [(torch.tensor(v),) for v in ([1.5, 0.0], [2.0, 1.0], [1.25, -1.0])]
    agree_or_refuse(model, inputs, raising=[(torch.tensor([-9.0, 0.0]),)])


@row(8)
@pytest.mark.parametrize("most", [1, 2])
def test_python_ends_the_loop_behind_its_first_iteration(most: int) -> None:
    def rebound(a: Tensor, b: Tensor) -> Any:
        i = 0
        while i < most and a.sum() > 1:
            b[0] = 7.0
            b = a + i
            i += 1
        return a.sum(), b

    def both(a: Tensor, b: Tensor) -> Any:
        total = b.sum()
        spare = torch.zeros(4)
        i = 0
        while i < most and total > 1:
            b[i] = 7.0
            a = a * 2
            b = spare
            i += 1
        return total, a

    def returned(a: Tensor, b: Tensor) -> Any:
        i = 0
        while i < most and a.sum() > 1:
            b[0] = 7.0
            b = a + i
            i += 1
            if b.sum() > 30:
                return b * 2
        return b

    inputs = [(torch.full((4,), value), torch.arange(4.0)) for value in (0.0, 1.0, 9.0)]
    agree(rebound, inputs)
    agree(both, inputs, paths=1)
    agree_or_refuse(returned, inputs)
