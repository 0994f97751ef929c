"""Which recurrent cell the states of a loop are: the forms of ONNX's RNN, GRU and LSTM, and their weights.

With gates ``r, z, i, f, o`` (a sigmoid of a sum) and ``n, g`` (a tanh of one), the next states are

- RNN: ``h = tanh(x @ w + h @ u + b)``
- GRU: ``h = (1 - z) n + z h``, or the same with ``1 - z`` for ``z``; ``n = tanh(x @ w + r (h @ u + b))`` or
  ``n = tanh(x @ w + (r h) @ u + b)``
- LSTM: ``c = f c + i g``, ``h = o tanh(c)``

each of them for the steps where a mask is true, while the state stays as it is for the others.
Source: ONNX operators RNN-14, GRU-14 and LSTM-14, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import BOOL
from dy2st.onnx.passes.cell_algebra import (
    Atom,
    Frozen,
    Gate,
    Monomial,
    Offset,
    Product,
    Reader,
    Row,
    State,
    Sum,
    UnreadError,
    frozen,
    plus,
)
from dy2st.onnx.passes.graph_facts import same_size


@dataclass(frozen=True)
class Cell:
    """A recurrent cell.

    ``places`` are those of its states (of an LSTM ``h`` and ``c``); ``rows`` its inputs in the order of the columns of
    ``w`` ``[gates * hidden, inputs]``; ``u`` is ``[gates * hidden, hidden]`` and ``b`` ``[2 * gates * hidden]``.
    """

    kind: str
    places: tuple[int, ...]
    rows: tuple[ir.Value, ...]
    w: np.ndarray
    u: np.ndarray
    b: np.ndarray
    mask: ir.Value | None
    attributes: Mapping[str, int] = field(default_factory=dict)

    @property
    def hidden(self) -> int:
        """The width of a state."""
        return int(self.u.shape[1])


@dataclass
class _Affine:
    """``rows @ w + h @ u + b``, and what a gate is multiplied with: ``(h @ u + b) * reset``."""

    w: dict[ir.Value, np.ndarray] = field(default_factory=dict)
    u: np.ndarray | None = None
    b: np.ndarray | None = None
    inner_b: np.ndarray | None = None
    reset: Gate | None = None
    early: bool = False  # whether the state is multiplied with the gate before the product
    plain: bool = False  # whether it is multiplied with no gate


def cells(body: ir.Graph, reader: Reader) -> Iterator[Cell]:
    """The cells of a loop's body: each of other states."""
    ends = body.outputs[1:]
    found: dict[int, tuple[Sum, ir.Value | None]] = {}
    for place in reader.states.values():
        try:
            found[place] = _unmasked(reader, ends[place], body.inputs[2 + place], place)
        except UnreadError:
            continue
    for places in [*((place,) for place in found), *itertools.permutations(found, 2)]:
        masks = {found[place][1] for place in places}
        if len(masks) == 1:
            try:
                yield _match([found[place][0] for place in places], places, masks.pop())
            except UnreadError:
                continue


def _unmasked(reader: Reader, end: ir.Value, start: ir.Value, place: int) -> tuple[Sum, ir.Value | None]:
    """What a state is after a step that counts, and the mask that says which do."""
    node = end.producer()
    while node is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    if node is not None and node.op_type == "Where" and node.inputs[2] is start:
        mask, new = node.inputs[:2]
        assert mask is not None
        assert new is not None
        if mask not in reader.inside or mask in reader.dependent or mask.dtype != BOOL or not _is_column(mask, start):
            raise UnreadError("a condition on something else")
        return reader.sum(new), mask
    total, state = reader.sum(end), frozenset((State(place),))
    for atom in {each for monomial in total for each in monomial if isinstance(each, Row)}:
        kept = {monomial: factor for monomial, factor in total.items() if atom not in monomial}
        if kept == {state: 1.0} and _is_column(atom.value, start):
            taken = {monomial - {atom}: factor for monomial, factor in total.items() if atom in monomial}
            return plus(taken, {state: 1.0}), atom.value
    return total, None


def _is_column(mask: ir.Value, state: ir.Value) -> bool:
    """Whether a mask has one number for each row of a state."""
    if mask.shape is None or state.shape is None or len(mask.shape) != 2:
        return False
    return same_size(mask.shape[0], state.shape[0]) and mask.shape[1] == 1


def _match(sums: Sequence[Sum], places: tuple[int, ...], mask: ir.Value | None) -> Cell:
    if len(sums) == 2:
        return _lstm(sums[0], sums[1], places, mask)
    if len(sums[0]) == 1:
        gate = _gate(_single(sums[0]), "Tanh")
        return _arranged("RNN", places, mask, [_affine(gate.argument, places[0])])
    return _gru(sums[0], places, mask)


def _gru(total: Sum, places: tuple[int, ...], mask: ir.Value | None) -> Cell:
    state = State(places[0])
    gates = {atom for monomial in total for atom in monomial if isinstance(atom, Gate)}
    by_kind = {kind: [gate for gate in gates if gate.kind == kind] for kind in ("Sigmoid", "Tanh")}
    if len(by_kind["Sigmoid"]) != 1 or len(by_kind["Tanh"]) != 1:
        raise UnreadError("other gates than a GRU's")
    (z,), (n,) = by_kind["Sigmoid"], by_kind["Tanh"]
    update = dict(z.argument)
    if total == {frozenset((state,)): 1.0, frozenset((z, state)): -1.0, frozenset((z, n)): 1.0}:
        update = plus({}, update, -1)  # 1 - sigmoid(a) is sigmoid(-a)
    elif total != {frozenset((n,)): 1.0, frozenset((z, n)): -1.0, frozenset((z, state)): 1.0}:
        raise UnreadError("another sum than a GRU's")
    new = _affine(n.argument, state.place)
    if new.reset is None:
        raise UnreadError("no reset gate")
    reset = _affine(new.reset.argument, state.place)
    return _arranged(
        "GRU",
        places,
        mask,
        [_affine(frozen(update), state.place), reset, new],
        linear_before_reset=int(not new.early),
    )


def _lstm(shown: Sum, kept: Sum, places: tuple[int, ...], mask: ir.Value | None) -> Cell:
    hidden, cell = (State(place) for place in places)
    tanh = Gate("Tanh", frozen(kept))
    o = _gate_beside(_only_monomial(shown), tanh, "Sigmoid")
    forgotten = [monomial for monomial in kept if cell in monomial]
    learned = [monomial for monomial in kept if cell not in monomial]
    if len(forgotten) != 1 or len(learned) != 1 or set(kept.values()) != {1.0} or len(learned[0]) != 2:
        raise UnreadError("another sum than an LSTM's")
    f = _gate_beside(forgotten[0], cell, "Sigmoid")
    g = next((atom for atom in learned[0] if isinstance(atom, Gate) and atom.kind == "Tanh"), None)
    if g is None:
        raise UnreadError("no tanh")
    i = _gate_beside(learned[0], g, "Sigmoid")
    return _arranged("LSTM", places, mask, [_affine(gate.argument, hidden.place) for gate in (i, o, f, g)])


def _only_monomial(total: Sum) -> Monomial:
    if list(total.values()) != [1.0]:
        raise UnreadError("a sum")
    return next(iter(total))


def _single(total: Sum) -> Atom:
    monomial = _only_monomial(total)
    if len(monomial) != 1:
        raise UnreadError("a product")
    return next(iter(monomial))


def _gate(atom: Atom, kind: str) -> Gate:
    if not isinstance(atom, Gate) or atom.kind != kind:
        raise UnreadError(f"no {kind}")
    return atom


def _gate_beside(monomial: Monomial, other: Atom, kind: str) -> Gate:
    """The gate that another atom is multiplied with."""
    rest = monomial - {other}
    if other not in monomial or len(rest) != 1:
        raise UnreadError("no product of two")
    return _gate(next(iter(rest)), kind)


def _affine(argument: Frozen, place: int) -> _Affine:
    """The weights of a sum.

    Raises:
        UnreadError: there is something else in it.
    """
    found = _Affine()
    for monomial, factor in argument:
        if abs(factor) != 1 and monomial:
            raise UnreadError("a scaled sum")
        gates = [atom for atom in monomial if isinstance(atom, Gate)]
        rest = monomial - set(gates)
        if len(rest) > 1 or len(gates) > 1 or any(gate.kind != "Sigmoid" for gate in gates):
            raise UnreadError("a product of gates")
        for gate in gates:
            _set_reset(found, gate, early=False)
        _take(found, next(iter(rest), None), factor, place, inner=bool(gates))
    if found.u is None or (found.reset is not None and found.plain) or (found.early and found.inner_b is not None):
        raise UnreadError("no product with the state")
    return found


def _take(found: _Affine, atom: Atom | None, factor: float, place: int, *, inner: bool) -> None:
    if atom is None and not inner:
        found.b = _sum(found.b, np.array(factor, np.float32))
    elif isinstance(atom, Offset):
        vector = np.float32(factor) * atom.vector.numpy()
        if inner:
            found.inner_b = _sum(found.inner_b, vector)
        else:
            found.b = _sum(found.b, vector)
    elif isinstance(atom, Product):
        matrix = np.float32(factor) * atom.matrix.numpy().T
        if isinstance(atom.operand, Row):
            if inner or atom.operand.value in found.w:
                raise UnreadError("two products with one row")
            found.w[atom.operand.value] = matrix
            return
        operand = _only_monomial(dict(atom.operand))
        gates = [each for each in operand if isinstance(each, Gate) and each.kind == "Sigmoid"]
        if operand - set(gates) != {State(place)} or len(gates) > 1 or (gates and inner) or found.u is not None:
            raise UnreadError("a product with something else")
        for gate in gates:
            _set_reset(found, gate, early=True)
        found.u, found.plain = matrix, not inner and not gates
    else:
        raise UnreadError("something else in a sum")


def _set_reset(found: _Affine, gate: Gate, *, early: bool) -> None:
    if found.reset is not None and (found.reset != gate or found.early != early):
        raise UnreadError("two gates")
    found.reset, found.early = gate, early


def _sum(one: np.ndarray | None, other: np.ndarray) -> np.ndarray:
    return other if one is None else one + other


def _arranged(
    kind: str, places: tuple[int, ...], mask: ir.Value | None, gates: Sequence[_Affine], **attributes: int
) -> Cell:
    """The weights of gates in ONNX's order."""
    if any(gate.reset is not None for gate in gates[:2]) or (kind != "GRU" and any(gate.reset for gate in gates)):
        raise UnreadError("a gate in a gate")
    rows = tuple(dict.fromkeys(row for gate in gates for row in gate.w))
    if not rows:
        raise UnreadError("no input")
    found = [matrix for gate in gates for matrix in gate.w.values()]
    widths = {row: next(gate.w[row].shape[1] for gate in gates if row in gate.w) for row in rows}
    hidden = found[0].shape[0]
    if any(gate.u is None or gate.u.shape != (hidden, hidden) for gate in gates):
        raise UnreadError("sizes that differ")
    nothing = np.zeros(hidden, np.float32)
    w = [
        np.concatenate([gate.w.get(row, np.zeros((hidden, widths[row]), np.float32)) for row in rows], 1)
        for gate in gates
    ]
    outer = [nothing + (nothing if gate.b is None else gate.b) for gate in gates]
    inner = [nothing + (nothing if gate.inner_b is None else gate.inner_b) for gate in gates]
    u = [gate.u for gate in gates if gate.u is not None]
    return Cell(
        kind, places, rows, np.concatenate(w), np.concatenate(u), np.concatenate([*outer, *inner]), mask, attributes
    )
