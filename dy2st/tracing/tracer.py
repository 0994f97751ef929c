"""The tracer of a running non-strict ``torch.export``, behind names of ours.

With ``layers`` this is all that touches torch's tracing internals (``proxy_tensor``): which graph nodes are added to,
and which node stands for which tensor or symbolic number. A subgraph of code is traced into a graph of its own by
pointing the tracer at another graph, with layered look-up tables: what a subgraph makes is known inside it only, what
the subgraphs around it made is seen through. No code is traced twice for that, and a node of another graph that shows
up among a subgraph's inputs *is* the list of what the subgraph captures.

Source: ``torch.fx.experimental.proxy_tensor`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.experimental import _config as shape_config
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, track_tensor_tree
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols, statically_known_true
from torch.utils.weak import WeakTensorKeyDictionary

from dy2st.errors import Location
from dy2st.source.user_frames import frames, is_users
from dy2st.tracing.constructs import place_text
from dy2st.tracing.example_sizes import agreed
from dy2st.tracing.forward_frames import noting_forward_frames
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.tracing.layers import Layer, LayeredSymbols, LayeredTensors
from dy2st.tracing.replaced import replaced
from dy2st.tracing.size_facts import SizeFacts, assume, known_again

__all__ = ["Tracing", "at_least", "equal_sizes", "known_true", "outside_the_trace", "same_size"]


@contextlib.contextmanager
def outside_the_trace() -> Iterator[None]:
    """What runs here runs as it does in eager mode, on real tensors."""
    with disable_proxy_modes_tracing(), unset_fake_temporarily(), torch._C.DisableTorchFunction():
        yield


def known_true(test: Any) -> bool:
    """Whether a symbolic condition holds for all sizes; no guard is made."""
    return bool(statically_known_true(test))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for all inputs; nothing is traced and no guard is made."""
    if a is b:
        return True
    with disable_proxy_modes_tracing():
        return bool(statically_known_true(a == b))


def equal_sizes(a: Any, b: Any) -> Any:
    """The condition that two sizes are equal, to be assumed; nothing is traced and no guard is made."""
    with disable_proxy_modes_tracing():
        return a == b


def at_least(size: Any, least: int) -> bool:
    """Whether a size is known to be at least ``least``; nothing is traced and no guard is made."""
    with disable_proxy_modes_tracing():
        return bool(statically_known_true(size >= least))


def common_dtype(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """The dtype that values of all these are promoted to. torch has an operator that says so, which is not traced."""
    with disable_proxy_modes_tracing():
        return functools.reduce(torch.promote_types, dtypes)


def users_stack(most: int = 4) -> str:
    """The user's frames of the running call, outermost first, as a traceback shows them; empty if there are none."""
    found: list[str] = []
    for frame in frames(sys._getframe(1)):
        filename = frame.f_code.co_filename
        if frame.f_code.co_name == "forward" and frame.f_globals.get("__name__") == "dy2st.capture.program":
            break  # around it is who exports, not the model
        if is_users(filename):
            text = linecache.getline(filename, frame.f_lineno).strip()
            found.append(f'File "{filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n    {text}')
            if len(found) == most:
                break
    return "\n".join(reversed(found))


PAIRWISE: dict[str, Callable[..., Any]] = {
    "_nary_sym_min": torch.sym_min,
    "_nary_sym_max": torch.sym_max,
    "sym_sum": operator.add,
}


def in_pairs(create_node: Callable[..., fx.Node]) -> Callable[..., fx.Node]:
    """Make nodes; a minimum, maximum or sum of sizes, which torch rebuilds as one call, as calls a program may have."""

    def create(kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **options: Any) -> fx.Node:
        function = PAIRWISE.get(getattr(target, "__name__", ""))
        if function is None or len(args) == 1:
            return create_node(kind, target, args, kwargs, *more, **options)
        found, *rest = args
        for other in rest:
            values = [each.meta.get("val") if isinstance(each, fx.Node) else each for each in (found, other)]
            found = create_node(kind, function, (found, other), {}, *more, **options)
            if None not in values:
                # torch itself says of the last call only what it gives.
                with proxy_tensor.disable_proxy_modes_tracing():
                    found.meta["val"] = function(*values)
        assert isinstance(found, fx.Node)
        return found

    return create


def extremes_in_pairs() -> contextlib.AbstractContextManager[None]:
    """``in_pairs`` for all graphs, while torch traces a program anew to decompose it."""
    create_node = fx.Graph.create_node

    @functools.wraps(create_node)
    def create(
        self: fx.Graph, op: str, target: Any, args: Any = None, kwargs: Any = None, *more: Any, **options: Any
    ) -> fx.Node:
        return in_pairs(functools.partial(create_node, self))(op, target, args, kwargs, *more, **options)

    return replaced([(fx.Graph, "create_node", create)])


@contextlib.contextmanager
def zero_is_a_size() -> Iterator[None]:
    """While a program is exported, sizes 0 and 1 are sizes like any other.

    torch takes dynamic sizes for two or more, and its symbols for positive: ``x.shape[0] == 0`` would be False for
    good. Here no guard excludes 0 and 1, and a size symbol may be zero.
    """
    create = ShapeEnv.create_symbol

    @functools.wraps(create)
    def create_symbol(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("do_not_specialize_zero_one"):
            kwargs["positive"] = None
        return create(self, *args, **kwargs)

    oblivious = shape_config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    with oblivious, replaced([(ShapeEnv, "create_symbol", create_symbol)]):
        yield


def starts_anywhere(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a view that begins at a data-dependent place in its memory."""
    return tensor.layout is torch.strided and bool(free_unbacked_symbols(tensor.storage_offset()))


class Tracing:
    """The tracer of the running export."""

    def __init__(self) -> None:
        mode = get_proxy_mode()
        if mode is None:
            raise RuntimeError("no trace is running")
        self.tracer: Any = mode.tracer
        fake_mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) or torch._guards.detect_fake_mode()
        assert fake_mode is not None
        self.fake_mode: Any = fake_mode
        self.shape_env: Any = fake_mode.shape_env
        self.root = Layer(self, None)
        self.layer = self.root
        self.names: dict[str, int] = {}
        # Whether a subgraph has found out something about sizes that does not hold around it.
        self.has_local_facts = False
        self.is_silent = False  # while nothing is traced
        # What truth values say of sizes.
        self.tests: Any = WeakTensorKeyDictionary()
        # Looks at each new node before it is used; may refuse it.
        self.check: Callable[[fx.Node], None] = lambda _node: None
        # Where the nodes that are made come from, if not from the line that is running.
        self.place = ""
        self.tracer.create_node = in_pairs(noting_forward_frames(self.tracer))  # type: ignore[method-assign]
        make_proxy = self.tracer.proxy

        def proxy(node: fx.Node) -> fx.Proxy:
            made: fx.Proxy = make_proxy(node)
            self.layer.proxies.append(made)
            self.check(node)
            gradient_mode().note(node)
            where = self.place or users_stack()
            if where:
                node.meta["stack_trace"] = where
            return made

        self.tracer.proxy = proxy  # type: ignore[method-assign]

    # ---- layers

    def activate(self, layer: Layer) -> None:
        """Nodes are appended to ``layer`` from now on."""
        self.layer = layer
        self.tracer.graph = layer.graph
        self.tracer.tensor_tracker = layer.tensors
        self.tracer.symnode_tracker = layer.symbols
        self.tracer.sympy_expr_tracker = layer.expressions

    @contextlib.contextmanager
    def inside(self, layer: Layer) -> Iterator[None]:
        """Append to ``layer`` for a while."""
        before, found = self.layer, layer.found
        self.activate(layer)
        try:
            with contextlib.nullcontext() if found is None else known_again(found, self.shape_env):
                yield
        finally:
            self.activate(before)

    def splice(self, layer: Layer) -> dict[fx.Node, fx.Node]:
        """Move everything that ``layer`` holds to the end of its parent; the map from old to new nodes."""
        parent = layer.parent
        assert parent is not None
        with self.inside(layer):
            # torch makes the proxies of computed sizes past the tracer.
            layer.proxies.extend(thunk.force() for thunk in layer.symbols.own.values())
        moved: dict[fx.Node, fx.Node] = {}
        for node in list(layer.graph.nodes):
            copied = parent.graph.node_copy(node, lambda n: moved.get(n, n))
            moved[node] = copied
        for node, copied in moved.items():
            node.replace_all_uses_with(copied)
        for node in reversed(moved):
            # Or it would still be a user of what it read.
            layer.graph.erase_node(node)
        for proxy in layer.proxies:
            proxy.node = moved.get(proxy.node, proxy.node)
        parent.proxies.extend(layer.proxies)
        parent.stale.update(layer.stale)
        for tensor, value in list(layer.tensors.items()):
            parent.tensors[tensor] = value
        own_symbols = parent.symbols.own if isinstance(parent.symbols, LayeredSymbols) else parent.symbols.sym_node_dict
        for node_key, thunk in layer.symbols.own.items():
            own_symbols.setdefault(node_key, thunk)
        for key, found in layer.expressions.own.items():
            if key not in parent.expressions:
                parent.expressions[key] = found
        return moved

    # ---- values

    def node_of(self, value: torch.Tensor) -> fx.Node | None:
        """The node that stands for a tensor here, or None for a tensor that the trace does not know."""
        found = self.layer.tensors.get(value)
        return None if found is None else found.proxy.node

    def proxy_of(self, value: Any) -> Any:
        """The proxy of a tensor or symbolic number; a plain number is itself."""
        if isinstance(value, torch.Tensor):
            return self.layer.tensors[value].proxy
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return proxy_tensor.fetch_sym_proxy(self.tracer)(value)
        return value

    def track(self, values: Any, proxy: Any) -> Any:
        """Let ``proxy`` (of an operator with several results) stand for ``values``."""
        with replaced([(self, "is_silent", True)]), proxy_tensor._enable_thunkify(self.tracer):
            return track_tensor_tree(values, proxy, constant=None, tracer=self.tracer)

    def renew_item(self, tensor: Any) -> None:
        """Forget the symbol that ``item()`` of a tensor has given, if that was in a subgraph that is no part of this.

        A fake tensor remembers it. It would be one that sizes of this subgraph have from before it.
        """
        made = getattr(tensor, "item_memo", None)
        if isinstance(made, torch.SymInt) and made not in self.layer.symbols:
            tensor.item_memo = None

    def forget_constant(self, tensor: torch.Tensor) -> None:
        """Stop the constant propagation of a tensor that a staged path writes to."""
        layer: Layer | None = self.layer
        while layer is not None:
            own = layer.tensors.own if isinstance(layer.tensors, LayeredTensors) else layer.tensors
            if tensor in own:
                own[tensor].constant = None
            layer = layer.parent
        if getattr(tensor, "constant", None) is not None:
            tensor.constant = None  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def at(self, location: Location) -> Iterator[None]:
        """Nodes made here come from the user's ``location``."""
        before = self.place
        self.place = place_text(location)
        try:
            yield
        finally:
            self.place = before

    @contextlib.contextmanager
    def untraced(self) -> Iterator[None]:
        """Make fake tensors without a trace of it."""
        with replaced([(self, "is_silent", True)]), disable_proxy_modes_tracing(), self.fake_mode:
            yield

    # ---- symbolic sizes

    def example_sizes(self) -> dict[Any, Any]:
        """The sizes of the example, by symbol."""
        return dict(self.shape_env.backed_var_to_val)

    def symbol_count(self) -> int:
        """How many unbacked symbols exist: later ones are younger."""
        return int(self.shape_env.unbacked_symint_counter)

    def is_younger(self, size: Any, count: int) -> bool:
        """Whether a size depends on an unbacked symbol made after ``count`` of them existed."""
        if not isinstance(size, torch.SymInt):
            return False
        return any(self.is_younger_symbol(symbol, count) for symbol in free_unbacked_symbols(size))

    @staticmethod
    def is_younger_symbol(symbol: Any, count: int) -> bool:
        """The same of one symbol."""
        return int(symbol.name.lstrip("zuf")) >= count

    def sizes_outside(self, shape: Sequence[Any], count: int) -> list[Any]:
        """The sizes of what stands for a tensor where it is not made, as far as they are known there.

        0 in place of a symbol made after ``count`` of them existed; ``max(n - 1, 0)`` in place of ``n - 1``, which may
        be negative where only the tensor's own path knows that ``n`` is not 0.
        """
        known = [0 if self.is_younger(s, count) else s for s in shape]
        return [s if at_least(s, 0) else torch.sym_max(s, 0) for s in known]

    def number_if_known(self, size: Any) -> Any:
        """A size, or the number that it is known to be."""
        if not isinstance(size, torch.SymInt):
            return size
        known = self.shape_env.bound_sympy(self.shape_env.simplify(size.node.expr))
        return int(known.lower) if known.lower == known.upper else size

    def least_value(self, size: Any) -> int:
        """The least value that a size is known to have, or 0."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        lower = self.shape_env.bound_sympy(self.shape_env.simplify(size.node.expr)).lower
        return max(int(lower), 0) if lower.is_Integer else 0

    def fresh_size(self) -> torch.SymInt:
        """A new unbacked size, zero or more."""
        size = self.shape_env.create_unbacked_symint()
        torch._check(size >= 0)
        return size  # type: ignore[no-any-return]

    def size_facts(self) -> SizeFacts:
        """What is known of the sizes now."""
        return SizeFacts.of(self.shape_env)

    def note_test(self, tensor: torch.Tensor, if_true: tuple[Any, ...], if_false: tuple[Any, ...]) -> torch.Tensor:
        """``tensor`` is a truth value: what it being true, or false, says of sizes (symbolic conditions)."""
        if if_true or if_false:
            self.tests[tensor] = (if_true, if_false)
        return tensor

    def said_by(self, tensor: Any, *, value: bool) -> tuple[Any, ...]:
        """What a truth value says of sizes if it is ``value``."""
        found = self.tests.get(tensor) if isinstance(tensor, torch.Tensor) else None
        return () if found is None else tuple(found[0 if value else 1])

    def assume(self, test: Any) -> bool:
        """Let a symbolic condition hold in the subgraph that is being traced; whether it does.

        Where the example's sizes contradict it, others stand for them (``example_sizes``). In the program itself it is
        left out then: eager raises for the example.
        """
        if not isinstance(test, torch.SymBool):
            return test is True
        fact = test.node.expr
        if self.layer is self.root and test.node.has_hint() and not test.node.hint:
            return False
        if not agreed(self.shape_env, fact):
            return False
        assume(self.shape_env, fact)
        if not free_unbacked_symbols(fact):
            self.layer.assumed.append(fact)
        return True

    def register(self, prefix: str, module: fx.GraphModule, modules: dict[str, Any]) -> str:
        """Give a subgraph a name of its own."""
        n = self.names.get(prefix, 0)
        self.names[prefix] = n + 1
        name = f"{prefix}_{n}"
        modules[name] = module
        # The tracer looks at its root module when a node names an attribute; the program keeps what it names itself.
        self.tracer.root.add_module(name, module)
        return name
