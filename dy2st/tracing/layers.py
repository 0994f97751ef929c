"""Graphs under construction, one in another, with the tables that say which node stands for what.

What a layer makes is known inside it only; what the layers around it made is seen through. With ``tracing``, which
switches between layers, this is all that touches torch's tracing internals (``proxy_tensor``).

Source: ``torch.fx.experimental.proxy_tensor`` of torch 2.13.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import fx
from torch.utils.weak import WeakTensorKeyDictionary

from dy2st.tracing.size_facts import SizeFacts


class Tracer(Protocol):
    """What layers need to know of the tracer that switches between them (``tracer.Tracing``)."""

    tracer: Any

    def inside(self, layer: Layer, /) -> AbstractContextManager[None]:
        """Append to ``layer`` for a while."""

    def symbol_count(self) -> int:
        """How many unbacked symbols exist."""


class OwnedThunk:
    """A delayed symbolic computation that is carried out in the graph it belongs to."""

    def __init__(self, thunk: Any, layer: Layer, tracing: Tracer) -> None:
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

    def __init__(self, layer: Layer, tracing: Tracer) -> None:
        self.own: dict[Any, Any] = {}
        self.layer = layer
        self.tracing = tracing

    def _key(self, key: Any) -> Any:
        return key.node

    def _seen_through(self, key: Any, parent: Layer) -> Any:
        """What the layers around have; None without."""
        found = parent.symbols.get(key)
        return found if isinstance(found, OwnedThunk | None) else OwnedThunk(found, parent, self.tracing)

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``."""
        own = self._key(key)
        if own in self.own:
            return self.own[own]
        assert self.layer.parent is not None
        found = self._seen_through(key, self.layer.parent)
        return default if found is None else found

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.own[self._key(key)] = value


class LayeredExpressions(LayeredSymbols):
    """Symbol (sympy) to its tracked value, through the layers."""

    def _key(self, key: Any) -> Any:
        return key

    def _seen_through(self, key: Any, parent: Layer) -> Any:
        found = parent.expressions.get(key)
        if found is None or isinstance(found.proxy, OwnedThunk):
            return found
        return type(found)(OwnedThunk(found.proxy, parent, self.tracing), found.value)


class Layer:
    """A graph under construction with its look-up tables."""

    def __init__(self, tracing: Tracer, parent: Layer | None) -> None:
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
        # What was known of sizes at the end of a subgraph that has found out something.
        self.found: SizeFacts | None = None
        # Conditions on sizes of inputs under which the graph runs.
        self.assumed: list[Any] = []
        # What is out of date, by storage: the write that has changed it in eager (``tracing.stale.Change``).
        self.stale: dict[int, Any] = {}

    def ancestors(self) -> list[Layer]:
        """The layers around this one, nearest first."""
        found = []
        layer = self.parent
        while layer is not None:
            found.append(layer)
            layer = layer.parent
        return found
