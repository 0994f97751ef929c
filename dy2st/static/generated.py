"""A captured program as one Python function: branches are ``if``, loops are ``while``, operators are calls of torch.

The graph of a program runs as fast as its operators are called. A module of ``torch.fx`` calls each through the
dispatcher's schema, and a branch or loop through that of an operator of higher order. Here all of it is one function,
whose text is short and can be read: see ``dy2st.to_static(f).programs``.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.static.bindings import called, unread_defaults
from dy2st.static.clones import Clones
from dy2st.static.needed import INFIX, needed_nodes
from dy2st.static.scalars import ITEMS, Scalars, is_cast, kind_of, literal_of, tensors_of, text_of
from dy2st.static.slices import is_in_next, is_slice, sliced
from dy2st.static.subgraphs import OURS, body_of, held, inputs_of, is_result_of_ours, results_of
from dy2st.static.undo_log import UndoLog
from dy2st.static.writes import writes_to_undo
from dy2st.static.written_rows import RowWriter, WrittenRows, written_rows
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.layouts import needs_a_layout
from dy2st.tracing.subgraph import written_inputs
from dy2st.tracing.wanted_gradients import LEAF

ATEN = torch.ops.aten
# The variable, or the text, of each node of a graph.
Names = dict[fx.Node, str]


@dataclass(frozen=True)
class Generated:
    """A function of a graph's inputs, its text, and how to undo what it has written to them.

    No line before that of the ``first_write`` writes to an input. The variable ``log`` has what is written to from
    there on: all of it before the line of the ``first_unlogged`` write, and all that comes before some guard.
    """

    function: Callable[..., Any]
    source: str
    first_write: int | None
    first_unlogged: int | None
    log: str


def generated(module: fx.GraphModule, numbers: Sequence[bool]) -> Generated:
    """A function of the graph's inputs that gives its results as a tuple.

    ``numbers`` says which results are numbers in eager: these are numbers of Python, or 0-d tensors.
    """
    text = _Text(Clones(module), Scalars(module, numbers))
    text.writers, text.logged = writes_to_undo(module, text.clones)
    names = [text.name(str(each.target)) for each in inputs_of(module)]
    if text.logged:
        text.lines.append(f"    {text.log} = {text.constant(UndoLog, 'log')}()")
    results = text.graph(module, names, "    ")
    made = results_of(module)
    for i in sorted(i for i in text.clones.results_to_clone() if made[i] not in text.members):
        results[i] = f"{text.constant(torch.clone, 'clone')}({results[i]})"
    lines = [f"def program({', '.join(names)}):", *text.lines, f"    return {tuple_of(results)}"]
    source = "\n".join(lines)
    space = dict(text.constants)
    exec(compile(source, "<program of dy2st>", "exec"), space)  # noqa: S102  made of the graph alone
    return Generated(space["program"], source, _line(text.first_write), _line(text.first_unlogged), text.log)


def _line(number: int | None) -> int | None:
    """The line of the function at which a line of its body is: behind the header, and counted from one."""
    return None if number is None else number + 2


def tuple_of(parts: Sequence[str]) -> str:
    """The text of a tuple."""
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


class _Text:
    """The lines of the function, and the constants that they name."""

    def __init__(self, clones: Clones, scalars: Scalars) -> None:
        self.clones, self.members = clones, scalars.members
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.variables: set[str] = set()
        self.writers: frozenset[fx.Node] = frozenset()
        self.logged: frozenset[fx.Node] = frozenset()
        self.first_write: int | None = None
        self.first_unlogged: int | None = None
        self.rows: dict[tuple[fx.Node, int], WrittenRows] = {}
        # The nodes that stack the rows that are written where they go, and those that write them.
        self.stacking: dict[fx.Node, fx.Node] = {}
        self.writing: dict[fx.Node, fx.Node] = {}
        # The numbers of iterations, where a tensor of each is made too.
        self.counters: dict[Any, str] = {}
        self._named: dict[int, str] = {}
        self._taken: dict[str, Iterator[int]] = {}
        self.log = self.name("log")

    def name(self, wanted: str) -> str:
        """A variable that no other has: it ends in an underscore, or in two and a number."""
        wanted = wanted.replace(".", "_")
        number = next(self._taken.setdefault(wanted, itertools.count()))
        made = f"{wanted}__{number}" if number else f"{wanted}_"
        self.variables.add(made)
        return made

    def constant(self, value: Any, wanted: str) -> str:
        """The name of an object in the function's globals: it ends in a number and a letter."""
        found = self._named.get(id(value))
        if found is None:
            found = self._named[id(value)] = f"{wanted.replace('.', '_')}_{len(self.constants)}c"
            self.constants[found] = value
        return found

    # ---- graphs

    def graph(self, module: fx.GraphModule, inputs: Sequence[str], indent: str) -> list[str]:
        """Write the nodes of a graph; ``inputs`` are the variables of its inputs. Gives those of its results."""
        names: Names = dict(zip(inputs_of(module), inputs, strict=True))
        for key, each in written_rows(module.graph).items():
            self.rows[key], self.writing[each.write] = each, each.rows
            self.stacking |= dict.fromkeys(each.between - {each.rows}, each.rows)
        last, needed = self._last_uses(module.graph), needed_nodes(module.graph) - self.stacking.keys()
        results: list[str] = []
        for node in module.graph.nodes:
            if node.op == "output":
                results = [self.value(each, names) for each in node.args[0]]
            elif node.op == "get_attr":
                value = held(module, node)
                if not isinstance(value, fx.GraphModule) or any(user.target not in OURS for user in node.users):
                    names[node] = self.constant(value, "held")
            elif node.op == "call_function" and node in needed:
                self._call(module, node, names, indent)
            dead = {names[each] for each in last.get(node, ()) if each in names}
            variables = sorted(each for each in dead if each in self.variables)
            if variables and node.op == "call_function":
                self.lines.append(f"{indent}{' = '.join(variables)} = None")
        return results

    def _last_uses(self, graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
        """For each node the values, made in the graph, whose variable no later one uses."""
        seen: set[fx.Node] = set()
        found: dict[fx.Node, list[fx.Node]] = {}
        for node in reversed(graph.nodes):
            for each in (*node.all_input_nodes, node):
                variable = self._variable_of(each)
                if variable not in seen and variable.op == "call_function":
                    found.setdefault(node, []).append(variable)
                seen.add(variable)
        return found

    def _variable_of(self, node: fx.Node) -> fx.Node:
        """The node whose variable a node's value is in."""
        while True:
            if self._is_alias(node) or node in self.writing or is_in_next(node):
                node = node.args[0]  # type: ignore[assignment]
            elif node in self.stacking:
                node = self.stacking[node]
            elif node.target is operator.getitem and is_result_of_ours(node):
                same = (user for user in node.args[0].users if user.args == node.args)  # type: ignore[union-attr]
                return next(same)
            else:
                return node

    def _is_alias(self, node: fx.Node) -> bool:
        """Whether a node is no more than another name of its operand."""
        return node.op == "call_function" and not node.meta.get(LEAF) and self.clones.left_out(node)

    def value(self, argument: Any, names: Names) -> str:
        """An argument of a node in the text."""
        if isinstance(argument, fx.Node):
            return names[argument]
        if isinstance(argument, (list, tuple)):
            parts = [self.value(each, names) for each in argument]
            return f"[{', '.join(parts)}]" if isinstance(argument, list) else tuple_of(parts)
        if argument is None or type(argument) in (bool, int, str):
            return repr(argument)
        if type(argument) is float and argument - argument == 0:
            return repr(argument)
        return self.constant(argument, "value")

    # ---- nodes

    def _call(self, module: fx.GraphModule, node: fx.Node, names: Names, indent: str) -> None:
        if node.target is branch_op:
            self._branch(module, node, names, indent)
        elif node.target is loop_op:
            self._loop(module, node, names, indent)
        elif node.target is operator.getitem and is_result_of_ours(node):
            names[node] = names[self._variable_of(node)] if self._variable_of(node) in names else names[node]
        elif node in self.members and literal_of(node) is not None:
            literal = literal_of(node)
            if isinstance(literal, fx.Node):
                names[node] = self.name(node.name)
                self.lines.append(f"{indent}{names[node]} = {kind_of(node)}({names[literal]})")
            else:
                names[node] = repr(literal)
        elif node in self.clones.once:
            names[node] = self.constant(_made_now(node), node.name)
        elif is_in_next(node):
            return
        elif node in self.writing:
            rows = names[self.writing[node]]
            self.lines.append(f"{indent}{rows}.target()")
            self._log(node, [f"{rows}.target()"], indent)
            self.lines.append(f"{indent}{rows}.finish()")
            names[node] = self.value(node.args[0], names)
        elif self._is_alias(node) and not needs_a_layout(node):
            names[node] = self.value(node.args[0], names)
        else:
            self._log(node, [self.value(each, names) for each in written_inputs(node)], indent)
            text = self._expression(node, names)
            if not node.users:
                self.lines.append(f"{indent}{text}")
                return
            names[node] = self.name(node.name)
            self.lines.append(f"{indent}{names[node]} = {text}")

    def _log(self, node: fx.Node, targets: Sequence[str], indent: str) -> None:
        """Note what a node writes to, if that may have to be undone."""
        if node not in self.writers:
            return
        at = len(self.lines)
        self.first_write = at if self.first_write is None else self.first_write
        if node not in self.logged:
            self.first_unlogged = at if self.first_unlogged is None else self.first_unlogged
            return
        self.lines += [f"{indent}{self.log}.note({each})" for each in targets]

    def _expression(self, node: fx.Node, names: Names) -> str:
        target: Any = node.target
        if is_slice(node):
            return sliced(node, lambda each: self.value(each, names))
        args = [self.value(each, names) for each in node.args]
        if node in self.members:
            on_members = text_of(node)
            if on_members is not None and all(each in self.members for each in tensors_of(node)):
                return on_members.format(*args)
            return f"{kind_of(node)}({self._called(node, args, names)})"
        if node.args and node.args[0] in self.members and (target in ITEMS or is_cast(node)):
            return args[0]
        if target in ITEMS and node.args[0] in self.counters:
            return self.counters[node.args[0]]
        return self._called(node, args, names)

    def _called(self, node: fx.Node, args: list[str], names: Names) -> str:
        target: Any = node.target
        if node.meta.get(LEAF):
            return f"{self.constant(_leaf, 'leaf')}({args[0]})"
        if target is operator.getitem:
            return f"{args[0]}[{args[1]}]"
        if target in INFIX:
            return f"{args[0]} {INFIX[target]} {args[1]}"
        if target is torch.sym_ite:
            return f"{args[1]} if {args[0]} else {args[2]}"
        if self._is_alias(node):
            return f"{self.constant(torch.Tensor.contiguous, 'contiguous')}({args[0]})"
        named = {**node.kwargs, **unread_defaults(target, len(args), node.kwargs)}
        kwargs = [f"{key}={self.value(each, names)}" for key, each in named.items()]
        return f"{self.constant(called(target), _short(target))}({', '.join([*args, *kwargs])})"

    def _branch(self, module: fx.GraphModule, node: fx.Node, names: Names, indent: str) -> None:
        condition, then, orelse, operands = node.args
        inputs = [self.value(each, names) for each in operands]  # type: ignore[union-attr]
        made = [self.name(f"{node.name}_{i}") for i in range(len(results_of(body_of(module, then))))]
        for keyword, arm in ((f"if {self.value(condition, names)}:", then), ("else:", orelse)):
            self.lines.append(f"{indent}{keyword}")
            results = self.graph(body_of(module, arm), inputs, f"{indent}    ")
            self._assign(made, results, f"{indent}    ")
        self._gather(node, made, names)

    def _loop(self, module: fx.GraphModule, node: fx.Node, names: Names, indent: str) -> None:
        body_node, trips, go, carried, operands, _, stacked = node.args
        body = body_of(module, body_node)
        state = [self.name(f"{node.name}_{i}") for i in range(len(carried))]  # type: ignore[arg-type]
        going, step = self.name("going"), self.name("step")
        rows = [self.name("rows") for _ in range(stacked)]  # type: ignore[arg-type]
        self._assign(state, [self.value(each, names) for each in carried], indent)  # type: ignore[union-attr]
        writers = [self.rows.get((node, len(state) + i)) for i in range(len(rows))]
        for each, written in zip(rows, writers, strict=True):
            self.lines.append(f"{indent}{each} = {'[]' if written is None else self._row_writer(written, names)}")
        self.lines.append(f"{indent}{step} = 0")
        self.lines.append(f"{indent}{going} = {'True' if go is None else self.value(go, names)}")
        bound = "" if trips is None else f" and {step} < {self.value(trips, names)}"
        self.lines.append(f"{indent}while {going}{bound}:")
        inner = f"{indent}    "
        start, wrote, unlogged = len(self.lines), self.first_write is not None, self.first_unlogged is not None
        counter = inputs_of(body)[0]
        number = step
        if counter.users and counter not in self.members:
            number, self.counters[counter] = self.name("iteration"), step
            self.lines.append(f"{inner}{number} = {self.constant(torch.tensor, 'tensor')}({step})")
        inputs = [self.value(each, names) for each in operands]  # type: ignore[union-attr]
        goes_on, *results = self.graph(body, [number, *state, *inputs], inner)
        if self.first_write is not None and not wrote:
            self.first_write = start  # its first lines come again
        if self.first_unlogged is not None and not unlogged:
            self.first_unlogged = start
        for each, result in zip(rows, results[len(state) :], strict=True):
            self.lines.append(f"{inner}{each}.append({result})")
        self._assign([going, *state], [goes_on, *results[: len(state)]], inner)
        self.lines.append(f"{inner}{step} += 1")
        for i, each in enumerate(rows):
            if writers[i] is not None:
                continue
            empty = self.constant(_empty_rows(body, 1 + len(state) + i), "empty")
            stack = self.constant(torch.stack, "stack")
            self.lines.append(f"{indent}{each} = {stack}({each}) if {each} else {empty}()")
        self._gather(node, [*state, *rows], names)

    def _row_writer(self, written: WrittenRows, names: Names) -> str:
        dim, start = written.place
        own = written.write not in self.writers
        return f"{self.constant(RowWriter, 'writer')}({self.value(written.base, names)}, {dim}, {start}, own={own})"

    def _assign(self, targets: Sequence[str], values: Sequence[str], indent: str) -> None:
        pairs = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.lines.append(f"{indent}{', '.join(left)} = {', '.join(right)}")
        elif not targets:
            self.lines.append(f"{indent}pass")

    def _gather(self, node: fx.Node, made: Sequence[str], names: Names) -> None:
        """The results of a branch or loop are the variables ``made``."""
        for user in node.users:
            names[user] = made[user.args[1]]  # type: ignore[index]


def _short(target: Any) -> str:
    name = (
        target._schema.name.rpartition("::")[2] if isinstance(target, OpOverload) else getattr(target, "__name__", "f")
    )
    return "".join(c if c.isalnum() else "_" for c in str(name))


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    """What the user's code has told to want a gradient."""
    return tensor.detach().requires_grad_()


def _made_now(node: fx.Node) -> torch.Tensor:
    with torch.inference_mode(mode=False), torch.no_grad():
        made: torch.Tensor = node.target(*node.args, **node.kwargs)  # type: ignore[operator]
        return made


def _empty_rows(body: fx.GraphModule, index: int) -> Callable[[], torch.Tensor]:
    """Of a loop that never ran: no rows, of the size that its body's would have; sizes that nobody knows are 0."""
    like = results_of(body)[index].meta["val"]
    size = [0, *(int(each) if isinstance(each, int) else 0 for each in like.shape)]
    dtype, device = like.dtype, like.device
    return lambda: torch.empty(size, dtype=dtype, device=device)
