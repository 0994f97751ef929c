"""Operators that stretch their operands: a size that is one for some inputs only (rows 31 and 48).

What is written to keeps its shape, so the value is stretched when the graph runs. Where the result's shape would be
another, the sizes have to be equal, and the program and the file say so.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest
import sympy
import torch
from harness import agree, dyn, refuses, row
from stretching import LEFT_OUT, Call, calls, equal_or_told, operators, public, stretched, written
from torch import Tensor
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import dy2st
import dy2st.onnx
from dy2st.sizes.shape_probing import Described, Outcome, Trials

if TYPE_CHECKING:
    from pathlib import Path

aten = torch.ops.aten
DYNAMIC = (Dim.DYNAMIC,) * 4
NAMED = tuple(Dim(name) for name in "klmn")
SHARED = (Dim("n"),) * 4

# ---- stores


def numbers(*shape: int, first: int = 0) -> Tensor:
    """Different numbers."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) + first


def into_a_slice(x: Tensor, d: Tensor) -> tuple[Tensor, ...]:
    y, z = x.clone(), x.clone()
    y[1:3, 0] = d
    z[1:3] = d[:, None]
    z[1:3].mul_(d[:, None]).clamp_(d[:, None] - 1000, d[:, None] * 50)
    return x.clone()[1:3].copy_(d[:, None]), y, z


# Two rows are written to; of two rows in all, one.
SLICES = [(4, 2), (4, 1), (2, 1), (7, 2), (7, 1)]


@row(31, 48)
@pytest.mark.parametrize("dims", [NAMED, DYNAMIC], ids=["named", "dynamic"])
def test_what_is_written_is_stretched_when_the_graph_runs(dims: tuple[Any, ...]) -> None:
    inputs = [(numbers(n, 3), numbers(k, first=100)) for n, k in SLICES]
    agree(into_a_slice, inputs, ({0: dims[0]}, {0: dims[1]}), paths=1)


def into_places(x: Tensor, d: Tensor, i: Tensor) -> tuple[Tensor, ...]:
    y, z, w = x.clone(), x.clone(), x.clone()
    y[i] = d
    z[i, 0] = d[:, 0]
    w[x[:, 0] > 4] = d
    return y, z, w, x.clone().index_put((i, i[:1]), d[:, 0])


@row(31, 48)
def test_what_is_written_to_places_is_stretched_when_the_graph_runs() -> None:
    inputs = [(numbers(4, 3), numbers(n, 3, first=100), torch.arange(k)) for n, k in [(2, 2), (1, 2), (1, 1), (2, 2)]]
    agree(into_places, inputs, ({0: NAMED[0]}, {0: NAMED[1]}, {0: NAMED[2]}), paths=1)


def on_a_path(x: Tensor, d: Tensor) -> Tensor:
    y = x.clone()
    if x.sum() > 10:
        y[1:3] = d
    t = 0
    while t < x.sum() / 100:
        y[:2].sub_(d)
        t += 1
    return y


@row(31, 48)
def test_what_is_written_on_a_path_is_stretched() -> None:
    inputs = [(numbers(n, 3), numbers(k, 3, first=1)) for n, k in [(4, 2), (4, 1), (9, 1), (30, 2), (3, 1)]]
    agree(on_a_path, [*inputs, (-numbers(3, 3), numbers(1, 3))], ({0: NAMED[0]}, {0: NAMED[1]}), paths=2)


# ---- results


REPRESENTATIVES = [
    ("torch.add(a, b)", "float float", "rows rows", "told"),
    ("torch.addcmul(a, b, c)", "float float float", "vector vector vector", "told"),
    ("torch.where(a, b, c)", "bool float float", "rows rows rows", "told"),
    ("torch.atan2(a, b)", "float float", "rows rows", "told"),
    ("a.lerp_(b, c)", "float float float", "rows rows rows", "equal"),
    ("torch.index_put(a, (b, c), d)", "float index index float", "batch vector vector vector", "equal"),
    ("torch.scatter(a, 0, b, c)", "float index float", "vector vector vector", "equal"),
    ("torch.matmul(a, b)", "float float", "rows batch", "equal"),
    ("torch.isin(a, b)", "float float", "vector vector", "equal"),
    ("torch.cross(a, b)", "float float", "columns columns", "told"),
]


@row(48)
@pytest.mark.parametrize(("text", "kinds", "layouts", "outcome"), REPRESENTATIVES)
def test_operands_are_stretched_or_the_sizes_are_told(
    text: str, kinds: str, layouts: str, outcome: str, tmp_path: Path
) -> None:
    made = Call(text, tuple(kinds.split()), tuple(layouts.split()), writes="_(" in text)
    assert stretched(made, DYNAMIC[: len(made.kinds)], tmp_path) == outcome


@row(48)
def test_sizes_with_names_of_their_own_are_not_taken_to_be_equal() -> None:
    def model(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return torch.addcmul(a, b, c)

    error = refuses(model, (numbers(3), numbers(3), numbers(3)), tuple({0: dim} for dim in NAMED[:3]))
    assert error.code == "D2S303"


@row(48)
def test_a_guard_of_sizes_comes_before_what_is_computed_with_them() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return torch.atan2(a.exp(), b.exp()).tanh()

    program = dy2st.onnx.export(model, (numbers(3), numbers(3)), dynamic_shapes=(dyn(0), dyn(0)))
    nodes = {node.name: node for node in program.model.graph}
    guard = next(node for name, node in nodes.items() if name and "exported for a.shape[0] == b.shape[0]" in name)
    order = list(program.model.graph)
    readers = [node for node in order if node.op_type == "Exp"]
    assert len(readers) == 2
    assert all(order.index(guard) < order.index(node) for node in readers)


# ---- what operators do at other sizes, without an export


def judged(function: Any, count: int) -> set[Outcome]:
    """What is found of the equality of an operator's operands' sizes."""
    env = ShapeEnv()
    symbols = sympy.symbols("k m n")[:count]
    env.backed_var_to_val.update(dict.fromkeys(symbols, sympy.Integer(4)))
    operands = tuple(Described((n,), (1,), torch.float32, torch.device("cpu")) for n in symbols)
    guards = [sympy.Eq(a, b) for a, b in itertools.pairwise(symbols)]
    # Of a dot product the result has no size.
    result = Described((), (), torch.float32, torch.device("cpu")) if function is aten.dot.default else operands[0]
    return set(Trials(env).judge(function, (operands, {}), result, guards))


@pytest.mark.parametrize(
    ("function", "count", "outcome"),
    [
        (aten.add.Tensor, 2, Outcome.OTHER),
        (aten.add_.Tensor, 2, Outcome.SAME),
        (aten.copy_.default, 2, Outcome.SAME),
        (aten.dot.default, 2, Outcome.RAISES),
        (aten.addcmul.default, 3, Outcome.OTHER),
        (aten.addcmul_.default, 3, Outcome.SAME),
    ],
)
def test_operators_are_tried_where_one_size_is_one(function: Any, count: int, outcome: Outcome) -> None:
    assert judged(function, count) == {outcome}


# ---- everything


@pytest.mark.slow
@row(48)
@pytest.mark.parametrize("name", sorted(operators()))
def test_every_operator(name: str, tmp_path: Path) -> None:
    found = calls(name)
    for made, dims in itertools.product(found, (DYNAMIC, NAMED, SHARED)):
        stretched(made, dims[: len(made.kinds)], tmp_path)


ITEMS = ("1:3", "1:", "::2", "1", "-1", "m", "i", ":", "...", "None", "[0, 2]", "k.item()", "True")
BODIES = {
    "": "x[{}] = d",
    "if": "if x.sum() > -1:\n        x[{}] = d",
    "loop": "t = 0\n    while t < k:\n        x[{}] = d\n        t += 1",
}


def pairs() -> list[str]:
    """Subscripts of one item and of two; a mask is one of rows."""
    both = [f"{a}, {b}" for a, b in itertools.product(ITEMS, ITEMS) if b != "m" and (a, b) != ("...", "...")]
    return [*ITEMS, *both]


def store(subscript: str, where: str, rank: int, folder: Path, dims: tuple[Any, ...]) -> str | None:
    """``x[subscript] = d`` with ``d`` of a rank, at all sizes that eager takes; None if it never takes one."""
    body = BODIES[where].format(subscript)
    model = written(f"def model(x, d, m, i, k):\n    x = x.clone()\n    {body}\n    return x, list(x.shape)\n", folder)
    taken = []
    for rows, n in itertools.product((4, 1, 0, 5, 2), (2, 1, 0, 3, 4, 5, 6)):
        d = numbers(*(n, 4, 3)[: 1 if rank == 1 else 3] if rank != 2 else (n, 3), first=100)
        places = torch.tensor([0, min(1, max(0, rows - 1))])
        given = (numbers(rows, 4, 3), d, torch.arange(rows) % 2 == 0, places, torch.tensor(1))
        try:
            model(*given)
        except (RuntimeError, IndexError):
            continue
        taken.append(given)
    example = next((given for given in taken if len(given[0]) == 4 and len(given[1]) > 1), None)
    if example is None or all(len(given[1]) != 1 for given in taken):
        return None
    others = [given for given in taken if given is not example]
    return equal_or_told(model, [example, *others], ({0: dims[0]}, {0: dims[1]}, {0: dims[0]}, None, None))


@pytest.mark.slow
@row(31, 48)
@pytest.mark.parametrize("subscript", pairs())
def test_every_store(subscript: str, tmp_path: Path) -> None:
    for rank, dims in itertools.product((1, 2, 3), (DYNAMIC, NAMED)):
        store(subscript, "", rank, tmp_path, dims)


@pytest.mark.slow
@row(31, 48)
@pytest.mark.parametrize("where", ["if", "loop"])
@pytest.mark.parametrize("subscript", [*ITEMS, "1:3, 1", "m, 1:3", "i, i", "..., 1", "k.item(), 1:"])
def test_stores_on_a_path(subscript: str, where: str, tmp_path: Path) -> None:
    for rank in (1, 2):
        store(subscript, where, rank, tmp_path, NAMED)


def test_what_is_left_out_exists() -> None:
    names = {schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}
    for patterns in LEFT_OUT.values():
        assert any(re.search(patterns, name) and public(name) for name in names)
    assert len(operators()) > 200
