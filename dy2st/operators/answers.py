"""What a capture has to answer.

The operators that rewritten code calls know of a capture only what ``Answers`` says; ``dy2st.capture`` lets one answer
in the running export session while torch traces. Importing this module, and all of ``dy2st.operators``, imports no
torch.
"""

from __future__ import annotations

from typing import Any, Protocol


class Answers(Protocol):
    """What a capture answers, statement by statement; each method is documented at its operator."""

    # fmt: off
    def branch(self, test: Any, names: tuple[str, ...], /) -> Any: """``if``."""
    def loop(self, names: tuple[str, ...], targets: tuple[str, ...], yields: bool, /) -> Any: """``while``, ``for``."""
    def each(self, iterable: Any, /, *, inner: bool) -> Any: """A clause of a comprehension."""
    def element(self, value: Any, /) -> Any: """An element of one."""
    def lazy(self, first: Any, names: tuple[str, ...], /, *, conjunction: bool) -> Any: """``and``, ``or``."""
    def not_(self, value: Any, /) -> Any: """``not``."""
    def in_(self, item: Any, container: Any, /) -> Any: """``in``."""
    def is_(self, a: Any, b: Any, /) -> Any: """``is``."""
    def equal(self, a: Any, b: Any, /) -> Any: """``==``."""
    def not_equal(self, a: Any, b: Any, /) -> Any: """``!=``."""
    def ordered(self, a: Any, b: Any, compare: Any, /) -> Any: """``<``, ``<=``, ``>``, ``>=``."""
    def concatenated(self, a: Any, b: Any, /) -> Any: """``+`` of tuple displays and shapes."""
    def truth(self, value: Any, /) -> Any: """A condition that can't be staged."""
    def assertion(self, value: Any, /) -> Any: """``assert``."""
    def call(self, function: Any, /) -> Any: """A callee."""
    def muted(self) -> Any: """The value of a statement that is left out."""
    def function(self) -> Any: """A function with early returns."""
    def generator(self) -> Any: """A generator."""
    def resumed_from_outside(self) -> None: """A generator from before the capture goes on."""
    def manager(self, manager: Any, /) -> Any: """``with``."""
    def try_(self, handlers: tuple[str, ...], names: tuple[str, ...] | None, /) -> Any: """``try``."""
    def block(self, statement: str, /) -> Any: """A suite of ``finally`` or ``with``."""
    def target(self, owner: Any, /) -> Any: """The object of a store."""
    def item(self, owner: Any, /) -> Any: """The object of a subscript."""
    def displayed(self, owner: Any, /) -> Any: """A display."""
    def mapped(self, pairs: list[tuple[Any, Any]], /) -> Any: """A dict display or comprehension."""
    def gathered(self, members: list[Any], /) -> Any: """A set display or comprehension."""
    def spread(self, value: Any, /) -> Any: """What a display takes all elements of."""
    def first(self, generator: Any, /, *default: Any) -> Any: """``next`` of a generator expression."""
    def unpacked(self, value: Any, /, *targets: Any) -> Any: """A value that is unpacked into several targets."""
    def read(self, value: Any, name: str, /) -> Any: """A load of a variable."""
    def text(self, value: Any, /) -> Any: """An f-string."""
    def formatted(self, template: str, values: Any, /) -> Any: """``template % values``."""
    def subject(self, value: Any, /, *, classes: bool) -> Any: """The subject of a ``match``."""
    def added(self, owner: Any, value: Any, /) -> Any: """The right side of ``+=``."""
    def touch_content(self, owner: Any, /) -> None: """An augmented assignment follows."""
    def touch_global(self, name: str, namespace: dict[str, Any], /) -> None: """A store to a global follows."""
    def touch_nonlocal(self, reader: Any, /) -> None: """A store to an outer variable follows."""
    # fmt: on
