"""Which of the copies of a program are moves: without them, nobody reads anything else.

A program is followed as it would run without some of its copies. *Objects* are what it would have in memories of their
own if it made all of them: inputs, results of operators, copies. Left out, a copy shares its operand's memory. What is
written to one object makes the others *stale* that may share its memory; an object that is written over as a whole is
no longer stale. A stale object that is read, or that is an input or a result at the end, means that some copy between
the two objects is made, and all is followed again. A tensor that is copied into itself is left as it is.

A loop is followed until nothing changes. Each value that it carries is an object of its own in an iteration; what an
earlier iteration has made is another object than what this one makes, and is forgotten where nothing hands it on.

A copy that eager makes too is left out only where nothing is written to what would share its memory: autograd may have
kept a tensor, and refuses one that has changed since. Where eager makes none, it refuses that as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import fx

from dy2st.static.aliasing import CLONES, changes_nothing, is_guard, is_new, is_view
from dy2st.static.subgraphs import OURS, body_of, held, inputs_of
from dy2st.static.written_rows import written_rows
from dy2st.tracing.graph_ops import branch_op
from dy2st.tracing.layouts import needs_a_layout
from dy2st.tracing.subgraph import changed_inputs, storage_of, written_inputs

ATEN = torch.ops.aten
# Operators that write over a tensor without having read it.
_WRITING_OVER = (ATEN.copy_.default, ATEN.fill_.Scalar, ATEN.fill_.Tensor, ATEN.zero_.default)
_READING_NO_ELEMENTS = (
    *(ATEN.sym_size.int, ATEN.sym_numel.default, ATEN.sym_stride.int, ATEN.sym_storage_offset.default),
    *(ATEN._assert_tensor_metadata.default, ATEN.detach.default),
)
Objects = frozenset[Any]
Nodes = frozenset[fx.Node]
_NONE: frozenset[Any] = frozenset()


class Earlier(NamedTuple):
    """What a node, or a place of a loop, was in an earlier iteration."""

    made: Any


class Value(NamedTuple):
    """What a node may be: some object; ``same`` is equal for two nodes that are one tensor for certain."""

    objects: Objects
    same: Any


@dataclass
class _Memory:
    """At one point of a program: the objects, by what they may share memory with, and which of them are stale.

    ``through`` are the copies left out between an object and what it shares memory with, ``stale`` those of which one
    would keep it from being that.
    """

    shares: dict[Any, Objects] = field(default_factory=dict)
    through: dict[Any, Nodes] = field(default_factory=dict)
    stale: dict[Any, Nodes] = field(default_factory=dict)

    def copy(self) -> _Memory:
        return _Memory(dict(self.shares), dict(self.through), dict(self.stale))

    def add(self, made: Any, of: Objects, copy: Nodes = _NONE) -> None:
        """A new object, which may be or share memory with some others."""
        around = of.union(*(self.shares.get(each, _NONE) for each in of)) - {made}
        self.drop(made)
        self.shares[made] = around
        for each in around:
            self.shares[each] |= {made}
        self.through[made] = copy.union(*(self.through.get(each, _NONE) for each in of))
        stale = _NONE.union(*(self.stale.get(each, _NONE) for each in of))
        if stale:
            self.stale[made] = stale

    def drop(self, made: Any) -> None:
        for each in self.shares.pop(made, _NONE):
            if each in self.shares:
                self.shares[each] -= {made}
        self.through.pop(made, None)
        self.stale.pop(made, None)

    def join(self, other: _Memory) -> None:
        for mine, others in ((self.shares, other.shares), (self.through, other.through), (self.stale, other.stale)):
            for key, value in others.items():
                mine[key] = mine.get(key, _NONE) | value

    def renamed(self, kept: Objects, name: Callable[[Any], Any]) -> _Memory:
        """With some objects only, which may get a name that another has as well: either is meant then."""
        made = _Memory()
        for key in self.shares:
            if key not in kept:
                continue
            new = name(key)
            others = frozenset(name(each) for each in self.shares[key] if each in kept and each != key)
            made.shares[new] = made.shares.get(new, _NONE) | others
            made.through[new] = made.through.get(new, _NONE) | self.through[key]
            if key in self.stale:
                made.stale[new] = made.stale.get(new, _NONE) | self.stale[key]
        return made


class Moves:
    """What is found of a program in which the clones ``left_out`` are not made.

    ``conflicts`` are sets of clones of which one has to be made, ``idle`` writes of a tensor into itself.
    """

    def __init__(self, module: fx.GraphModule, left_out: AbstractSet[fx.Node], unwritten: AbstractSet[fx.Node]) -> None:
        """``unwritten`` are those of the clones whose operand nothing may be written to later."""
        self.conflicts: list[Nodes] = []
        # The objects whose memory is written to.
        self.written: set[Any] = set()
        self._left_out, self._unwritten = left_out, unwritten
        self._copied_into_itself: dict[fx.Node, bool] = {}
        self._memory = _Memory()
        # Into what the rows of a loop are written.
        self._bases: dict[fx.Node, list[Value]] = {}
        made = self._graph(module, self._inputs(module))
        for value in [*made, *(Value(frozenset((each,)), each) for each in self._lasting)]:
            self._read(value.objects)

    @property
    def idle(self) -> set[fx.Node]:
        """The copies of a tensor into itself."""
        return {node for node, idle in self._copied_into_itself.items() if idle}

    def _inputs(self, module: fx.GraphModule) -> list[Value]:
        """Those that share memory for the trace are one object."""
        known: dict[Any, Any] = {}
        found = []
        for node in inputs_of(module):
            value = node.meta.get("val")
            strided = isinstance(value, torch.Tensor) and value.layout is torch.strided
            found.append(Value(frozenset((known.setdefault(storage_of(node) if strided else node, node),)), node))
        self._lasting = set(known.values())
        for each in self._lasting:
            self._memory.add(each, _NONE)
        return found

    # ---- reading and writing

    def _read(self, objects: Objects) -> None:
        for each in objects:
            if each in self._memory.stale:
                self.conflicts.append(self._memory.stale[each])

    def _write(self, value: Value) -> None:
        memory = self._memory
        for target in value.objects:
            self.written |= {target, *memory.shares.get(target, _NONE)}
            for other in memory.shares.get(target, _NONE):
                mine, others = memory.through[target], memory.through[other]
                between = mine ^ others or mine | others
                if between:
                    memory.stale[other] = memory.stale.get(other, _NONE) | between
                for each in (mine | others) & self._unwritten:
                    self.conflicts.append(frozenset((each,)))

    def _written_over(self, value: Value) -> None:
        if len(value.objects) == 1 and not isinstance(next(iter(value.objects)), Earlier):
            for each in value.objects:
                self._memory.stale.pop(each, None)

    # ---- graphs

    def _graph(self, module: fx.GraphModule, inputs: Sequence[Value]) -> list[Value]:
        """The results of a graph."""
        known: dict[Any, Any] = dict(zip(inputs_of(module), inputs, strict=True))
        for node in module.graph.nodes:
            if node.op == "output":
                return [_value(each, known) for each in node.args[0]]
            if node.op == "get_attr" and isinstance(found := held(module, node), torch.Tensor):
                made = ("held", id(found))
                if made not in self._memory.shares:
                    self._memory.add(made, _NONE)
                    self._lasting.add(made)
                known[node] = Value(frozenset((made,)), made)
            elif node.op == "call_function":
                known[node] = self._call(module, node, known)
        return []

    def _call(self, module: fx.GraphModule, node: fx.Node, known: dict[Any, Any]) -> Any:
        if node.target in OURS:
            given = node.args[3:4] if node.target is branch_op else node.args[3:5]
            tests: Any = node.args[:1] if node.target is branch_op else node.args[1:3]
            for each in tests:
                self._read(_value(each, known).objects)
            follow = self._branch if node.target is branch_op else self._loop
            values = [[_value(each, known) for each in part] for part in given]  # type: ignore[union-attr]
            self._bases[node] = [
                _value(each.base, known) for (loop, _), each in written_rows(module.graph).items() if loop is node
            ]
            return follow(module, node, *values)
        if node.target is operator.getitem and isinstance(known.get(node.args[0]), list):
            return known[node.args[0]][node.args[1]]
        if changes_nothing(node) or is_guard(node):
            return _value(node.args[0], known)
        if node.target in CLONES and isinstance(node.args[0], fx.Node):
            return self._clone(node, _value(node.args[0], known))
        return self._operator(node, known)

    def _clone(self, node: fx.Node, operand: Value) -> Value:
        if node not in self._left_out:
            self._read(operand.objects)
            self._memory.add(node, _NONE)
            return Value(frozenset((node,)), node)
        self._memory.add(node, operand.objects, frozenset((node,)))
        return Value(frozenset((node,)), node if needs_a_layout(node) else operand.same)

    def _operator(self, node: fx.Node, known: dict[Any, Any]) -> Value:
        written, changed = written_inputs(node), changed_inputs(node)
        over = written[0] if written and node.target in _WRITING_OVER else None
        views = is_view(node)
        if not views and node.target not in _READING_NO_ELEMENTS:
            for each in node.all_input_nodes:
                if each is not over or node.args.count(each) > 1:
                    self._read(_value(each, known).objects)
        if node.target is ATEN.copy_.default:
            target, source = (_value(each, known) for each in node.args[:2])
            idle = target.same is not None and target.same == source.same
            self._copied_into_itself[node] = self._copied_into_itself.get(node, True) and idle
            if idle:
                self._written_over(target)
                return target
        for each in changed:
            self._write(_value(each, known))
        if over is not None and _is_whole(_value(over, known)):
            self._written_over(_value(over, known))
        if is_new(node):
            self._memory.add(node, _NONE)
            return Value(frozenset((node,)), node)
        if written and len(written) == 1:
            return _value(written[0], known)
        of = [_value(each, known) for each in node.all_input_nodes]
        if node.target is ATEN.detach.default:
            return of[0]
        objects = _NONE.union(*(each.objects for each in of))
        if not views:  # it may be one
            self._memory.add(node, _NONE)
            objects |= {node}
        return Value(objects, ("view", node))

    # ---- branches and loops

    def _branch(self, module: fx.GraphModule, node: fx.Node, operands: list[Value]) -> list[Value]:
        before = self._memory.copy()
        then = self._graph(body_of(module, node.args[1]), operands)
        memory, self._memory = self._memory, before
        orelse = self._graph(body_of(module, node.args[2]), operands)
        self._memory.join(memory)
        alike = [one.same if one.same == other.same else None for one, other in zip(then, orelse, strict=True)]
        places = [(node, i) for i in range(len(then))]
        objects = [one.objects | other.objects for one, other in zip(then, orelse, strict=True)]
        self._stand_for(places, objects, self._memory)
        return [
            Value(frozenset((place,)), place if same is None else same)
            for place, same in zip(places, alike, strict=True)
        ]

    def _stand_for(self, places: Sequence[Any], objects: Sequence[Objects], source: _Memory) -> None:
        """Places are new objects, each for one of some that there were in ``source``."""
        memory = self._memory
        for place, of in zip(places, objects, strict=True):
            memory.add(place, of & frozenset(memory.shares))
            memory.through[place] = _NONE.union(*(source.through.get(each, _NONE) for each in of))
            memory.stale.pop(place, None)
            if stale := _NONE.union(*(source.stale.get(each, _NONE) for each in of)):
                memory.stale[place] = stale
        # Two places share memory only where what they stand for does.
        for i, (place, of) in enumerate(zip(places, objects, strict=True)):
            around = _NONE.union(*(source.shares.get(each, _NONE) for each in of))
            for other, others in list(zip(places, objects, strict=True))[i + 1 :]:
                if of & others or around & others:
                    memory.shares[place] |= {other}
                    memory.shares[other] |= {place}
                else:
                    memory.shares[place] -= {other}
                    memory.shares[other] -= {place}

    def _loop(self, module: fx.GraphModule, node: fx.Node, initial: list[Value], operands: list[Value]) -> list[Value]:
        body = body_of(module, node.args[0])
        counter, *inputs = inputs_of(body)
        places = inputs[: len(initial)]
        outside = frozenset(self._memory.shares)
        self._memory.add(counter, _NONE)
        self._stand_for(places, [each.objects for each in initial], self._memory.copy())
        alike = [each.same for each in initial]
        count: Any = node.args[6]
        rows: list[Objects] = [_NONE] * count
        head = self._memory.copy()
        while True:
            self._memory = head.copy()
            carried = [Value(frozenset((place,)), same) for place, same in zip(places, alike, strict=True)]
            given = [Value(frozenset((counter,)), counter), *carried, *operands]
            goes_on, *results = self._graph(body, given)
            self._read(goes_on.objects)
            for base in self._bases[node]:
                self._write(base)
            following, made = results[: len(initial)], results[len(initial) :]
            grown = [old | new.objects for old, new in zip(rows, made, strict=True)]
            self._next_iteration(outside, places, [each.objects for each in following], grown)
            self._memory.join(head)
            grown = [frozenset(_earlier(each, outside) for each in objects) for objects in grown]
            still = [same if same == new.same else at for same, new, at in zip(alike, following, places, strict=True)]
            if self._memory == head and (still, grown) == (alike, rows):
                break
            head, alike, rows = self._memory, still, grown
        for each in rows:
            self._read(each)  # they are stacked
        ends = [(node, i) for i in range(len(initial) + count)]
        self._stand_for(ends, [*(frozenset((place,)) for place in places), *(_NONE for _ in rows)], head.copy())
        for place in (*places, counter):
            self._memory.drop(place)
        same = [end if one is place else one for one, place, end in zip(alike, places, ends, strict=False)]
        same += ends[len(initial) :]
        return [Value(frozenset((end,)), one) for end, one in zip(ends, same, strict=True)]

    def _next_iteration(
        self, outside: Objects, places: Sequence[Any], following: Sequence[Objects], rows: Sequence[Objects]
    ) -> None:
        """At the end of one: what is handed on stands in the places of the next, and the rest is forgotten."""
        memory = self._memory
        ends = [(place, "next") for place in places]
        self._stand_for(ends, following, memory.copy())
        kept = outside.union(ends, *rows)
        back = dict(zip(ends, places, strict=True))
        self._memory = memory.renamed(kept, lambda each: back.get(each) or _earlier(each, outside))


def _earlier(made: Any, outside: Objects) -> Any:
    """The name that what was made in an iteration has in later ones."""
    return made if made in outside or isinstance(made, Earlier) else Earlier(made)


def _value(argument: Any, known: dict[Any, Any]) -> Value:
    found = known.get(argument) if isinstance(argument, fx.Node) else None
    if isinstance(found, list):
        return Value(_NONE.union(*(each.objects for each in found)), None)
    return Value(_NONE, None) if found is None else found


def _is_whole(value: Value) -> bool:
    """Whether a value is known to be all of an object, and no view of it."""
    return not (isinstance(value.same, tuple) and value.same[:1] == ("view",))
