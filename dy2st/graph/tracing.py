"""The tracer of a running non-strict ``torch.export``, behind names of ours.

This is the only module that touches torch's tracing internals (``proxy_tensor``): which graph nodes are appended to,
and which node stands for which tensor or symbolic number. A region of code is traced into a graph of its own by
pointing the tracer at another graph, with layered look-up tables: what a region makes is known inside it only, what
the regions around it made is seen through. No code is traced twice for that, and a node of another graph that shows
up among a region's inputs *is* the list of what the region captures.

Source: ``torch.fx.experimental.proxy_tensor`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import fx
from torch.fx.experimental import _config as shape_config
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, track_tensor_tree
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols, statically_known_true
from torch.utils.weak import WeakTensorKeyDictionary

from dy2st.errors import Location
from dy2st.graph.grad_mode import GRADIENTS
from dy2st.graph.places import is_users
from dy2st.graph.size_facts import SizeFacts, assume, known_again

__all__ = ["Tracing", "at_least", "known_true", "same_size"]


def known_true(test: Any) -> bool:
    """Whether a symbolic condition holds for all sizes; no guard is made."""
    return bool(statically_known_true(test))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for all inputs; nothing is traced and no guard is made."""
    if a is b:
        return True
    with disable_proxy_modes_tracing():
        return bool(statically_known_true(a == b))


def at_least(size: Any, least: int) -> bool:
    """Whether a size is known to be at least ``least``; nothing is traced and no guard is made."""
    with disable_proxy_modes_tracing():
        return bool(statically_known_true(size >= least))


def user_frames(most: int = 4) -> str:
    """The user's frames of the running call, outermost first, as a traceback shows them; empty if there are none."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < most:
        filename = frame.f_code.co_filename
        if frame.f_code.co_name == "forward" and frame.f_globals.get("__name__") == "dy2st.capture":
            break  # around it is who exports, not the model
        if is_users(filename):
            text = linecache.getline(filename, frame.f_lineno).strip()
            found.append(f'File "{filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n    {text}')
        frame = frame.f_back
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
            found = create_node(kind, function, (found, other), {}, *more, **options)
        assert isinstance(found, fx.Node)
        return found

    return create


@contextlib.contextmanager
def extremes_in_pairs() -> Iterator[None]:
    """``in_pairs`` for all graphs, while torch traces a program anew to decompose it."""
    create_node = fx.Graph.create_node

    @functools.wraps(create_node)
    def create(
        self: fx.Graph, op: str, target: Any, args: Any = None, kwargs: Any = None, *more: Any, **options: Any
    ) -> fx.Node:
        return in_pairs(functools.partial(create_node, self))(op, target, args, kwargs, *more, **options)

    fx.Graph.create_node = create  # type: ignore[method-assign]
    try:
        yield
    finally:
        fx.Graph.create_node = create_node  # type: ignore[method-assign]


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

    with shape_config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        ShapeEnv.create_symbol = create_symbol  # type: ignore[method-assign]
        try:
            yield
        finally:
            ShapeEnv.create_symbol = create  # type: ignore[method-assign]


class OwnedThunk:
    """A delayed symbolic computation that is carried out in the graph it belongs to."""

    def __init__(self, thunk: Any, layer: Layer, tracing: Tracing) -> None:
        self.thunk = thunk
        self.layer = layer
        self.tracing = tracing

    def force(self) -> Any:
        """The proxy; its node is appended to the owner's graph if it is new."""
        with self.tracing.inside(self.layer):
            return self.thunk.force()


class LayeredTensors:
    """Tensor to proxy: what this layer made, else what the layers around it made."""

    def __init__(self, parent: Any) -> None:
        self.own: Any = WeakTensorKeyDictionary()
        self.parent = parent

    def __contains__(self, key: torch.Tensor) -> bool:
        return key in self.own or key in self.parent

    def __getitem__(self, key: torch.Tensor) -> Any:
        return self.own[key] if key in self.own else self.parent[key]

    def get(self, key: torch.Tensor, default: Any = None) -> Any:
        """As ``dict.get``."""
        return self[key] if key in self else default  # noqa: SIM401  # this is ``get``

    def __setitem__(self, key: torch.Tensor, value: Any) -> None:
        self.own[key] = value

    def items(self) -> Any:
        """This layer's own pairs."""
        return self.own.items()


class LayeredSymbols:
    """Symbolic number (by its node) to thunk; an outer layer's thunk runs in the outer graph."""

    def __init__(self, layer: Layer, tracing: Tracing) -> None:
        self.own: dict[Any, Any] = {}
        self.layer = layer
        self.tracing = tracing

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``."""
        if key.node in self.own:
            return self.own[key.node]
        parent = self.layer.parent
        assert parent is not None
        found = parent.symbols.get(key)
        if found is None:
            return default
        return found if isinstance(found, OwnedThunk) else OwnedThunk(found, parent, self.tracing)

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.own[key.node] = value


class LayeredExpressions:
    """Symbol (sympy) to its tracked value, through the layers."""

    def __init__(self, layer: Layer, tracing: Tracing) -> None:
        self.own: dict[Any, Any] = {}
        self.layer = layer
        self.tracing = tracing

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``."""
        if key in self.own:
            return self.own[key]
        parent = self.layer.parent
        assert parent is not None
        found = parent.expressions.get(key)
        if found is None:
            return default
        if isinstance(found.proxy, OwnedThunk):
            return found
        return type(found)(OwnedThunk(found.proxy, parent, self.tracing), found.value)

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: Any, value: Any) -> None:
        self.own[key] = value


class Layer:
    """A graph under construction with its look-up tables."""

    def __init__(self, tracing: Tracing, parent: Layer | None) -> None:
        self.parent = parent
        self.tensors: Any
        self.symbols: Any
        self.expressions: Any
        self.proxies: list[fx.Proxy] = []
        if parent is None:
            tracer = tracing.tracer
            self.graph: fx.Graph = tracer.graph
            self.tensors = tracer.tensor_tracker
            self.symbols = tracer.symnode_tracker
            self.expressions = tracer.sympy_expr_tracker
        else:
            self.graph = fx.Graph(tracer_cls=getattr(parent.graph, "_tracer_cls", None))
            self.tensors = LayeredTensors(parent.tensors)
            self.symbols = LayeredSymbols(self, tracing)
            self.expressions = LayeredExpressions(self, tracing)
        self.first_symbol = tracing.symbol_count()
        # What was known of sizes at the end of a region that has found out something.
        self.found: SizeFacts | None = None

    def ancestors(self) -> list[Layer]:
        """The layers around this one, nearest first."""
        found = []
        layer = self.parent
        while layer is not None:
            found.append(layer)
            layer = layer.parent
        return found


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
        # What truth values say of sizes.
        self.tests: Any = WeakTensorKeyDictionary()
        # Looks at each new node before it is used; may refuse it.
        self.check: Callable[[fx.Node], None] = lambda _node: None
        # Where the nodes that are made come from, if not from the line that is running.
        self.place = ""
        self.tracer.create_node = in_pairs(self.tracer.create_node)  # type: ignore[method-assign]
        make_proxy = self.tracer.proxy

        def proxy(node: fx.Node) -> fx.Proxy:
            made: fx.Proxy = make_proxy(node)
            self.layer.proxies.append(made)
            self.check(node)
            GRADIENTS.note(node)
            where = self.place or user_frames()
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
        with proxy_tensor._enable_thunkify(self.tracer):
            return track_tensor_tree(values, proxy, constant=None, tracer=self.tracer)

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
        self.place = f'File "{location.filename}", line {location.line}\n    {(location.text or "").strip()}'
        try:
            yield
        finally:
            self.place = before

    @contextlib.contextmanager
    def untraced(self) -> Iterator[None]:
        """Make fake tensors without a trace of it."""
        with disable_proxy_modes_tracing(), self.fake_mode:
            yield

    # ---- symbolic sizes

    def symbol_count(self) -> int:
        """How many unbacked symbols exist: later ones are younger."""
        return int(self.shape_env.unbacked_symint_counter)

    def is_younger(self, size: Any, count: int) -> bool:
        """Whether a size depends on an unbacked symbol made after ``count`` of them existed."""
        if not isinstance(size, torch.SymInt):
            return False
        return any(int(s.name.lstrip("zuf")) >= count for s in free_unbacked_symbols(size))

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

    def assume(self, test: Any) -> None:
        """Let a symbolic condition hold in the region that is being traced.

        One that the example's sizes contradict is left out: torch takes what it is told for true of the example too.
        """
        if isinstance(test, torch.SymBool) and (not test.node.has_hint() or test.node.hint):
            assume(self.shape_env, test.node.expr)

    def register(self, prefix: str, module: fx.GraphModule, modules: dict[str, Any]) -> str:
        """Give a subgraph a name of its own."""
        n = self.names.get(prefix, 0)
        self.names[prefix] = n + 1
        name = f"{prefix}_{n}"
        modules[name] = module
        # The tracer looks at its root module when a node names an attribute; the program keeps what it names itself.
        self.tracer.root.add_module(name, module)
        return name
