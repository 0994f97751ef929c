"""Values that are of one kind on one path and of another on the other."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from harness import agree, both_signs, dyn, refuses, row, scalars
from torch import Tensor, nn

import dy2st
from dy2st.errors import DtypeWarning


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


def lists(*values: list[float]) -> list[tuple[Tensor]]:
    return [(torch.tensor(v),) for v in values]


@row(17, 5)
def test_none_until_the_first_iteration() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        h = None
        pair = None
        for line in x:
            h = line if h is None else h * 0.5 + line
            if pair is None:
                pair = (line, line * 2)
            else:
                a, b = pair
                pair = (a + line, b * line)
        if pair is None or h is None:
            return x.sum(), x.sum()
        return h.sum(), pair[0].sum() + pair[1].sum()

    agree(model, [(torch.rand(n, 2),) for n in (3, 1, 0, 2)], (dyn(0),), paths=4)


@row(17, 22)
def test_best_so_far() -> None:
    def model(x: Tensor) -> tuple[int, Tensor]:
        best, index = None, -1
        for i, value in enumerate(x):
            if value > 0 and (best is None or value > best):
                best, index = value, i
        return index, (best if best is not None else torch.zeros(()))

    agree(model, lists([1.0, 3.0, 2.0], [-1.0], [], [-1.0, 2.0, 2.0]), (dyn(0),), paths=3)


@row(17, 29)
def test_a_cache_on_self() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(2, 3)

        def forward(self, x: Tensor, reset: Tensor) -> Tensor:
            self.state = None
            for i in range(x.shape[0]):
                if reset[i]:
                    self.state = None
                # The cell makes a state of zeros of None.
                self.state = self.cell(x[i], self.state)
            if self.state is not None:
                return self.state.sum()
            return x.sum()

    def given(*reset: bool) -> tuple[Tensor, Tensor]:
        return torch.rand(len(reset), 1, 2), torch.tensor(reset, dtype=torch.bool)

    agree(Model(), [given(False, True, False), given(False), given(), given(True, False)], (dyn(0), dyn(0)))


@row(17, 43)
def test_none_used_as_a_tensor_fails_where_eager_raises() -> None:
    def model(x: Tensor) -> Tensor:
        scale = None
        if x.sum() > 0:
            scale = x.max()
        shifted = x + 1
        return shifted * scale

    agree(model, lists([1.0, 2.0], [3.0]), (dyn(0),), paths=1, raising=lists([-1.0], []))


@row(17, 21)
def test_optional_number() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        first = None
        for i in range(x.shape[0]):
            if x[i] > 1 and first is None:
                first = i
        if first is None:
            first = -1
        return x * first, first

    agree(model, lists([0.0, 2.0, 3.0], [0.0], [2.0], []), (dyn(0),), paths=3)


@row(18)
def test_an_int_tensor_or_a_float_tensor() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        count = x.long().sum()
        if x.sum() > 3:
            count = x.sum() * 0.5
        total = count + x
        return count / torch.sqrt(x.abs().sum()), torch.where(x > 0, total, total * 2.5)

    agree(model, lists([1.0, 2.0, 3.0], [-1.0, 2.0], [0.25]), (dyn(0),))


@row(18, 21)
def test_an_int_or_a_float() -> None:
    def model(x: Tensor) -> Tensor:
        best = 0
        for value in x:
            if value > best:
                best = float(value)
        return x - best

    agree(model, lists([0.5, 2.5, 1.0], [-1.0], []), (dyn(0),))


@row(18)
def test_a_result_of_two_float_dtypes_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        count = x.double().sum()
        if x.sum() > 3:
            count = x.sum()
        return count

    error = refuses(model, (torch.ones(2),))
    assert "float64" in str(error)
    assert "float32" in str(error)


@row(18)
def test_a_result_that_is_an_integer_on_one_path_is_a_float() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() == 0:
            return torch.tensor(0)
        return x.max() / x.sum()

    with pytest.warns(DtypeWarning, match="int64.*float32"):
        program = dy2st.export(model, (torch.ones(2),))
    for x in (torch.ones(2), torch.zeros(2)):
        found = program.module()(x)
        assert found.dtype is torch.float32
        assert found == model(x)


@row(17, 18, 24)
def test_a_number_of_a_lower_kind_is_a_float_that_is_warned_of() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        total, flag = 0, x.sum()
        for line in x:
            if line.sum() > 0:
                total, flag = total + line.sum(), True
        return total, torch.arange(3) * total, total * x[:, 0], 3 - total * 2, total / 2, flag

    with pytest.warns(DtypeWarning) as notes:
        program = dy2st.export(model, (torch.ones(2, 2),), dynamic_shapes=(dyn(0),))
    assert {note.filename for note in notes} == {__file__}
    found = sorted(str(note.message).partition(", depending")[0] for note in notes)
    assert found == [
        "the model returns a float32[3] tensor or an int64 tensor",
        "the model returns a float32[] tensor or a bool",
        "the model returns a float32[] tensor or an int",
        "the model returns a float32[] tensor or an int64 tensor",
    ]
    for x in (torch.ones(2, 2), -torch.ones(3, 2), torch.zeros(0, 2), torch.tensor([[1.0, 2.0], [-3.0, 1.0]])):
        for want, got in zip(model(x), program.module()(x), strict=True):
            assert got.dtype is torch.float32
            assert torch.equal(torch.as_tensor(want).float(), got)


@row(17, 24)
def test_a_number_of_a_lower_kind_that_does_not_show() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        total = 0
        for line in x:
            if line.sum() > 0:
                total = total + line.sum()
        return total / 2, total * x, total > 1, max(total, 0.5) * 1.5

    agree(model, [(torch.ones(2, 2),), (-torch.ones(3, 2),), (torch.zeros(0, 2),)], (dyn(0),), paths=3)


@row(17, 18)
def test_a_flag_that_is_a_number_on_one_path_is_no_index() -> None:
    def model(x: Tensor, i: Tensor) -> Tensor:
        if x.sum() > 0:
            i = True
        return x[i]

    error = refuses(model, (torch.ones(3), torch.tensor(1)))
    assert isinstance(error, dy2st.errors.DifferentRanksError)


@row(17, 18)
def test_an_int_that_a_float_can_not_hold_is_not_rounded() -> None:
    def model(x: Tensor) -> Tensor:
        total = x.sum() if x[0] > 0 else 16777217
        return total % 2 == 1

    program = dy2st.export(model, (torch.ones(2),))
    for x in (torch.ones(2), -torch.ones(2)):
        assert program.module()(x) == torch.as_tensor(model(x))


@row(19, 24)
def test_a_number_or_a_vector() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = 0
        for line in x:
            if line.sum() > 0:
                total = total + line
        loss = 0.0
        if x.sum() > 1:
            loss = loss + x
        return total + x.sum(0), loss * 2 + x

    agree(model, [(torch.rand(3, 2),), (-torch.rand(1, 2),), (torch.rand(0, 2),)], (dyn(0),))


@row(1, 16)
def test_strings_and_enums_that_change() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, bool]:
        mode, state, steps = Mode.SLOW, "start", 0
        if x.sum() > 0:
            mode = Mode.FAST
        for value in x:
            if state == "start":
                if value > 0:
                    state = "run"
            elif state == "run":
                steps += 1
                if value < 0:
                    state = "stop"
            else:
                steps += 10
        y = x * 2 if mode is Mode.SLOW else x * 3
        match state:
            case "stop":
                y = y + 1
            case "run" | "start":
                y = y - 1
        return y, steps, state == "stop"

    agree(model, lists([1.0, 2.0, -1.0, 3.0], [-1.0, -2.0], [], [1.0, 2.0]), (dyn(0),), paths=4)


@row(36, 35)
def test_functions_and_modules_that_differ() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            layer, function = self.wide, torch.sin
            if x.sum() > 0:
                layer = self.narrow
            for line in x:
                if line[0] > 0.5:
                    function = torch.cos
                x = function(layer(x))
            return x + layer.weight.sum()

    first = torch.tensor([[0.9, 0.1], [0.2, 0.3]])
    agree(Model(), [(first,), (-torch.rand(1, 2),), (torch.zeros(0, 2),)], (dyn(0),), paths=3)


@row(14, 13)
def test_variables_that_only_one_path_sets() -> None:
    def model(x: Tensor) -> Tensor:
        if x.abs().max() < 1:
            steps = 0
        else:
            steps = 3
            direction = x * 0.5
            storage = torch.zeros_like(x)
        for i in range(steps):
            torch.mul(direction, i + 1.0, out=storage)
            x = x - storage * 0.1
        return x

    agree(model, lists([0.5, -0.5], [2.0, 1.0], [0.1, 4.0]))


@row(15, 43)
def test_variables_that_a_loop_makes() -> None:
    def model(x: Tensor) -> Tensor:
        for value in x:
            if value > 0:
                last = value * 2
        return x + last

    agree(model, lists([1.0, -2.0], [3.0]), (dyn(0),), raising=lists([-1.0], []))


@row(28, 27)
def test_keys_that_only_some_paths_set() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found: dict[str, Tensor] = {}
        for value in x:
            if "max" not in found:
                found["max"] = value
            else:
                found["max"] = torch.maximum(found["max"], value)
        counts = {"seen": torch.zeros(())}
        if x.sum() > 1:
            counts["large"] = x.sum()
        large = counts.pop("large", torch.tensor(-1.0))
        return found.get("max", torch.zeros(())), counts["seen"] + large, counts.setdefault("more", x)

    agree(model, lists([1.0, 3.0, 2.0], [-1.0], []), (dyn(0),))


@row(28, 43)
def test_a_missing_key_fails_where_eager_raises() -> None:
    def model(x: Tensor) -> Tensor:
        cache = {}
        if x.sum() > 0:
            cache["scale"] = x.max()
        return x * cache["scale"]

    agree(model, lists([1.0, 3.0], [2.0]), (dyn(0),), paths=1, raising=lists([-1.0]))


@row(29, 49)
def test_attributes_that_only_some_paths_set() -> None:
    class Store:
        pass

    def model(x: Tensor) -> Tensor:
        store = Store()
        if x.sum() > 0:
            store.scale = x.max()  # type: ignore[attr-defined]
        if hasattr(store, "scale"):
            x = x * store.scale
        return x

    agree(model, lists([1.0, 3.0], [-2.0]), (dyn(0),))


@row(29, 56)
def test_stores_through_an_object_that_differs() -> None:
    @dataclass(eq=False)
    class Account:
        total: Tensor
        n: int = 0

    class Plain:
        def __init__(self, total: Tensor) -> None:
            self.total = total

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = Plain(torch.zeros(())), Plain(torch.ones(()))
        for value in x:
            chosen = a if value > 0 else b
            chosen.total = chosen.total + value
        return a.total, b.total

    agree(model, lists([1.0, -3.0, 2.0], [-2.0], []), (dyn(0),))


@row(17, 49)
def test_isinstance_and_truth_of_one_of_several() -> None:
    def model(x: Tensor) -> Tensor:
        value = None
        if x > 0:
            value = x
        if x > 5:
            value = 3
        y = x * 0
        if isinstance(value, Tensor):
            y = y + 1
        if value:
            y = y + value
        return y + (value or 10)

    agree(model, scalars(1.0, -1.0, 6.0), paths=3)


@row(17)
def test_nested_optionals() -> None:
    def model(x: Tensor) -> Tensor:
        state: dict[str, Tensor | None] = {"h": None, "c": None}
        for value in x:
            h, c = state["h"], state["c"]
            if h is None or c is None:
                h, c = value, value * 2
            state = {"h": h + value, "c": None if value < 0 else c}
        h = state["h"]
        if h is None:
            return x.sum()
        return h if state["c"] is None else h + 1

    agree(model, lists([1.0, 3.0, 2.0], [-2.0], [], [1.0, -1.0, 1.0]), (dyn(0),), paths=4)


@row(17)
def test_a_result_that_may_be_none() -> None:
    def model(x: Tensor) -> Tensor | None:
        return x if x.sum() > 0 else None

    agree(model, both_signs(2, 3), (dyn(0),))


@row(17, 11)
def test_a_case_that_a_test_has_excluded_in_what_is_returned() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        best, count = None, 0
        for value in x:
            if value > 0:
                best = value * 2
                count += 1
        if best is None:
            return torch.zeros(()), 0
        return best, count

    agree(model, [(torch.tensor(v),) for v in ([1.0, -1.0], [-1.0], [2.0, 3.0], [])], (dyn(0),), paths=2)


@row(17, 29)
def test_a_case_that_a_test_has_excluded_in_a_tuple_of_an_attribute() -> None:
    class State:
        pass

    def model(x: Tensor) -> tuple[Tensor, int]:
        state = State()
        state.best = (None, 0)
        for value in x:
            if value > 0:
                state.best = (value * 2, state.best[1] + 1)
        if state.best[0] is None:
            state.best = (torch.zeros(()), 0)
        return state.best[0] + 1, state.best[1]

    agree(model, [(torch.tensor(v),) for v in ([1.0, -1.0], [-1.0], [2.0, 3.0], [])], (dyn(0),), paths=2)


class Reduced:
    """Has a method for each kind."""

    def by_pairs(self, x: Tensor) -> Tensor:
        return x * 2

    def by_elements(self, x: Tensor) -> Tensor:
        return x + 1


@row(17)
def test_texts_made_of_one_of_several_texts() -> None:
    """Names of methods, keys and comparisons, however the text is put together."""

    def model(x: Tensor) -> Any:
        kind = "pairs" if x.sum() > 0 else "elements"
        table = {"k_pairs": x * 3, "k_elements": x - 1}
        parts = ["k", kind]
        found = getattr(Reduced(), f"by_{kind}")(x) + getattr(Reduced(), "by_{}".format(kind))(x)  # noqa: UP032
        found = found + table[f"k_{kind}"] + table["k_%s" % kind] + table["_".join(parts)]  # noqa: UP031
        return found if f"{kind:>8}!" == "   pairs!" else -found

    agree(model, [(torch.ones(3),), (-torch.ones(3),)])


@row(17)
def test_what_one_value_by_path_says_of_another() -> None:
    """Of values that differ by one path, each tells which path it was."""

    def empty(losses: Any) -> bool:
        if (not torch.is_tensor(losses)) and (losses == 0):  # noqa: SIM103  as people write it
            return True
        return False

    def model(x: Tensor) -> Tensor:
        losses, indices, kind = 0, None, "none"
        if x.sum() > 0:
            losses, indices, kind = x * 2, torch.arange(3), "pairs"
        if empty(losses):
            return x.sum()
        assert torch.is_tensor(indices)
        assert kind == "pairs"
        return (losses * 3).sum() + indices.sum()

    agree(model, [(torch.ones(3),), (-torch.ones(3),)])


@row(18)
@pytest.mark.filterwarnings("ignore::dy2st.errors.DtypeWarning")
@pytest.mark.parametrize("constant", [0, 2**24 + 1])
def test_a_check_compares_a_promoted_result_by_its_value(constant: int) -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() == 0:
            return torch.tensor(constant)
        return x.max() / x.sum()

    report = dy2st.check(model, [(torch.ones(2),), (torch.zeros(2),)])
    # The larger one is no float32.
    assert report.outcome == ("equal" if constant == 0 else "differs")
