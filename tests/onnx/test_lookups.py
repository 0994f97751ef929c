"""Lookups whose indices count from zero: the file fails where eager does, and tests only what may be negative."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.export import Dim

import dy2st
from dy2st.onnx.passes import index_tests
from dy2st.onnx.passes.natural_numbers import NaturalNumbers
from tests.onnx.graph_text import parsed

TABLE = torch.arange(12.0).reshape(4, 3)


def along(index: Tensor) -> Tensor:
    return index[:, None].expand(-1, 3)


LOOKUPS = {
    "embedding": lambda x, i: F.embedding(i, x),
    "embedding of int32": lambda x, i: F.embedding(i.to(torch.int32), x),
    "bags": lambda x, i: F.embedding_bag(i[None], x),
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, along(i)),
    "take_along_dim": lambda x, i: x.take_along_dim(i[:, None], 0),
    "scatter of a number": lambda x, i: x.scatter(0, along(i), 1.5),
    "scatter": lambda x, i: x.scatter(0, along(i), x[:2] * 2),
    "scatter_add": lambda x, i: x.scatter_add(0, along(i), x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, along(i), x[:2], "amax"),
    "index_add": lambda x, i: x.index_add(0, i, x[:2], alpha=2),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2] * 2),
    "numbers": lambda x, i: (x.index_fill(0, i[0], 2.0), x.index_add(0, i[1], x[:1]), x.index_copy(0, i[0], x[2:3])),
    "index_copy of columns": lambda x, i: x.index_copy(-1, i - 1, x[:, :2] * 2),
    "one_hot": lambda x, i: (x, F.one_hot(i, 4)),
    "nll_loss": lambda x, i: F.nll_loss(x.T[:2], i),
    "cross_entropy": lambda x, i: F.cross_entropy(x.T[:2], i, ignore_index=2),
    "index_fill": lambda x, i: x.index_fill(0, i, 1.5),
    "take": lambda x, i: x.take(i),
    "indexing": lambda x, i: x[i],
    "put": lambda x, i: x.index_put((i,), x[:2] * 2),
}
NOT_COUNTED_FROM_ZERO = {"take_along_dim", "index_fill", "take", "indexing", "put"}


def outcome(call, *args):
    """What a call gives, or that it fails."""
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 - which error it is differs
        return type(error)


@pytest.mark.parametrize("name", LOOKUPS)
def test_an_index_that_eager_rejects(name, tmp_path):
    file = tmp_path / "lookup.onnx"
    form = LOOKUPS[name]
    dy2st.onnx.export(form, (TABLE, torch.tensor([1, 2])), file, dynamic_shapes=({}, {}))
    session = ort.InferenceSession(file)
    raised = 0
    for pair in ([1, 2], [2, 1], [3, 1], [-1, 2], [1, -1], [-4, 2], [1, -5], [4, 1], [1, -100], [2, -100]):
        index = torch.tensor(pair)
        given = {"x": TABLE.numpy(), "i": index.numpy()}
        eager = outcome(form, TABLE, index)
        found = outcome(session.run, None, {each.name: given[each.name] for each in session.get_inputs()})
        if isinstance(eager, type):
            raised += 1
            assert isinstance(found, type), (pair, found)
        else:
            wanted = [eager] if isinstance(eager, Tensor) else list(eager)
            for one, other in zip(wanted, found, strict=True):
                torch.testing.assert_close(torch.from_numpy(other), one, equal_nan=True, msg=f"{pair}")
    assert raised >= 4 or name in NOT_COUNTED_FROM_ZERO


class Decoder(nn.Module):
    """Greedy decoding from a token that a caller gives."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, token: Tensor, most: Tensor) -> Tensor:
        said = []
        for _ in range(int(most)):
            token = self.out(self.table(token)).argmax(-1)
            said.append(token)
        return torch.stack(said) if said else token[None][:0]


class Started(Decoder):
    """The same from a token of its own."""

    def forward(self, token: Tensor, most: Tensor) -> Tensor:
        return super().forward(torch.zeros_like(token), most)


class Counted(nn.Module):
    """Positions that count what a mask lets pass, as in RoBERTa, and places that sorting and halving give."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 3)

    def forward(self, x: Tensor, here: Tensor) -> tuple[Tensor, ...]:
        positions = here.cumsum(-1) * here.to(torch.int64) + 1
        order = x.argsort(-1)
        values, places = x.topk(2, -1)
        last = torch.zeros((), dtype=torch.int64)
        while last < x.shape[0] - 1 and x.index_select(0, last[None])[0] > 0.1:
            last = last + 1
        rows = self.table(positions), self.table(places // 2), self.table(places % 3)
        return (*rows, x.gather(-1, order), values, self.table(torch.where(order < 1, 0, order - 1).clamp(0, 5)), last)


def count_of_tests(model, args, **options):
    written = dy2st.onnx.export(model, args, **options)
    return sum(index_tests.tested_index(node) is not None for node in written.model.graph.all_nodes())


def test_what_is_never_negative_is_not_tested():
    torch.manual_seed(0)
    n = Dim("n")
    sets = [(torch.rand(n), torch.rand(n) > 0.4) for n in (4, 7)]
    model = Counted()
    assert dy2st.check(model, sets, dynamic_shapes=({0: n}, {0: n})).ok
    assert count_of_tests(model, sets[0], dynamic_shapes=({0: n}, {0: n})) == 0
    args = torch.tensor([1, 2]), torch.tensor(3)
    assert count_of_tests(Started(), args) == 0
    assert count_of_tests(Decoder(), args) == 1
    assert dy2st.check(Decoder(), [args, (args[0], torch.tensor(0))]).ok


def natural(lines: str, name: str = "y") -> bool:
    model = parsed(f"""
    g (int64[4] i, int32[4] few, float[4] x, bool[4] here, uint8[4] bytes, int64[1] one, int64 trips) => (int64[k] y) {{
        zero = Constant<value_int = 0>()
        unit = Constant<value_int = 1>()
        axis = Constant<value_int = 0>()
        none = Constant<value_int = -1>()
        size = Shape(x)
        {lines}
    }}""")
    inferred = ir.from_proto(onnx.shape_inference.infer_shapes(ir.to_proto(model)))
    values = {out.name: out for node in inferred.graph.all_nodes() for out in node.outputs}
    return NaturalNumbers(inferred).has(values[name])


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ("y = Identity(i)", False),
        ("y = Max(i, zero)", True),
        ("y = Max(i, none)", False),
        ("y = Min(size, i)", False),
        ("y = Clip(i, zero, unit)", True),
        ("y = Clip(i, zero, i)", False),
        ("y = Mod(i, size)", True),
        ("y = Mod<fmod = 1>(i, size)", False),
        ("y = Cast<to = 7>(bytes)", True),
        ("y = Cast<to = 7>(x)", False),
        ("low = Cast<to = 7>(here)  y = CumSum(low, axis)", True),
        ("low = Cast<to = 7>(here)  sum = CumSum(low, axis)  y = Sub(sum, unit)", False),
        ("place = ArgMax<axis = 0>(x)  rest = Mod(place, unit)  y = Sub(place, rest)", True),
        ("place = ArgMax<axis = 0>(x)  rest = Mod(i, unit)  y = Sub(place, rest)", False),
        ("wide = Max(i, zero)  y = Add(wide, unit)", False),  # it may be the largest number
        ("low = Less(i, zero)  y = Where(low, zero, i)", True),
        ("low = Less(i, none)  y = Where(low, zero, i)", False),
        ("low = Less(i, zero)  y = Where(low, i, zero)", False),
        ("low = Greater(i, none)  y = Where(low, i, zero)", True),
        ("low = Greater(few, few)  y = Where(low, i, zero)", False),
        ("y = Range(zero, trips, unit)", True),
        ("y = Range(trips, none, none)", False),
        ("top = Squeeze(size)  y = Range(top, none, none)", True),
        ("y = ScatterElements(size, one, one)", False),
        ("y = ScatterElements(size, one, size)", True),
        ("y = BitwiseAnd(i, unit)", True),
    ],
)
def test_what_is_known_of_integers(lines, known):
    assert natural(lines) is known


@pytest.mark.parametrize(
    ("start", "step", "known"),
    [
        ("zero", "next = Add(at, unit)", True),
        ("none", "next = Add(at, unit)", False),
        ("zero", "next = Sub(at, unit)", False),
        ("zero", "next = Identity(other)", True),
        ("trips", "next = Identity(other)", False),
        ("zero", "next = Add(at, other)", False),  # it may overflow
    ],
)
def test_states_of_loops(start, step, known):
    """``other`` follows one trip behind the state."""
    lines = f"""
        y, last = Loop(trips, , {start}, zero) <
            body = body (int64 step, bool go_in, int64 at, int64 other) => (bool go, int64 next, int64 before) {{
                go = Identity(go_in)
                {step}
                before = Identity(at)
            }}
        >"""
    assert natural(lines) is known


def test_a_test_that_a_user_writes():
    """What it is replaced by is the same, also where a graph gives it."""
    model = parsed("""
    g (float[n, 4] x) => (int64[n] y) {
        zero = Constant<value_int = 0>()
        most = Constant<value_int = 9223372036854775807>()
        place = ArgMax<axis = 1, keepdims = 0>(x)
        below = Less(place, zero)
        y = Where(below, most, place)
    }""")
    index_tests.drop_index_tests(model)
    assert "Where" not in [node.op_type for node in model.graph]
    onnx.checker.check_model(ir.to_proto(model))
