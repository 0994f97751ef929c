"""A running capture: what rewritten code asks for, under ``torch.export``."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from dy2st.calls.builtins.overloads import is_staged, spread
from dy2st.calls.builtins.python_builtins import overloads
from dy2st.calls.builtins.short_circuit import first_element
from dy2st.calls.call_conversion import followed, with_cases
from dy2st.calls.class_calls import ConvertedClasses
from dy2st.calls.managers import CapturedManager
from dy2st.errors import (
    CaughtError,
    ComprehensionError,
    DataError,
    IdentityError,
    LeakedValueError,
    SeedError,
    TrainingNormError,
)
from dy2st.operators.branch import NOT_TAKEN, TAKEN
from dy2st.operators.export_session import current
from dy2st.operators.logic import PythonLazy
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import iterated, may_be_absent, present, subject, verdict
from dy2st.staging.branches.function_exits import CapturedBlock, CapturedFunction, WithBlock, leave_by_exception
from dy2st.staging.branches.staged_branch import StagedBranch
from dy2st.staging.branches.staged_logic import StagedLazy
from dy2st.staging.branches.try_statement import CapturedTry, raise_if
from dy2st.staging.cases import all_there
from dy2st.staging.conditions import condition, negated, truth_number
from dy2st.staging.containers.data_keyed import as_made, gathered
from dy2st.staging.containers.data_lists import DataRow
from dy2st.staging.containers.equality import are_staged, inverts_equality, same_elements
from dy2st.staging.containers.list_methods import added
from dy2st.staging.containers.list_values import concatenated
from dy2st.staging.containers.membership import contains
from dy2st.staging.containers.ordering import are_sequences, fields_of, order_of
from dy2st.staging.containers.referred_objects import same_object
from dy2st.staging.containers.staged_stores import load_target, store_target
from dy2st.staging.containers.targets import Targets, unpacked
from dy2st.staging.loops.comprehension import Comprehension, filtered, finished
from dy2st.staging.loops.driver import CapturedLoop
from dy2st.staging.loops.filtered_comprehension import NativeClause, filters
from dy2st.staging.loops.gathered_generators import gathering
from dy2st.staging.loops.iterables import as_iterable, gone_over
from dy2st.staging.loops.looped_comprehension import LoopedComprehensions
from dy2st.staging.loops.staged_generators import CapturedGenerator
from dy2st.staging.routes import route_to
from dy2st.staging.session import Session
from dy2st.tracing.stale import check_read
from dy2st.tracing.subgraph import alias_chain, leaked, storage_of, training_norm, written_inputs
from dy2st.values.error_recovery import RecoveryValue
from dy2st.values.journal import Slot
from dy2st.values.number import SYMBOLS, Number, number_kind
from dy2st.values.references import is_reference, refer_to
from dy2st.values.stacked_list import StackedList
from dy2st.values.staged_text import UNKNOWN, TextParts, is_unknown, text, unknown_part
from dy2st.values.tagged_union import TaggedUnion, any_unions, cases_of, has_texts, tag_of, text_by_case
from dy2st.values.undefined import Undefined

# The types of values that stand for others.
OUR_CLASSES = (Number, TaggedUnion, Undefined, StackedList, *SYMBOLS)


class Capture(Session):
    """The state of one capture."""

    def __init__(self) -> None:
        self.classes = ConvertedClasses()
        super().__init__()
        self.overloads = overloads()
        self.looped = LoopedComprehensions()
        self.tracing.check = self.check_node

    def check_node(self, node: fx.Node) -> None:
        """A node has been made: refuse it if the graph would say something else than eager."""
        if node.op != "call_function":
            return
        for read in node.all_input_nodes:
            check_read(self.tracing.layer, storage_of(read))
        if self.tracing.place:
            return
        for target in written_inputs(node):
            source = alias_chain(target)[-1]
            if source.op == "get_attr":
                error = DataError(
                    "a tensor that belongs neither to the call nor to the module's buffers is changed in place",
                    hint="register_buffer() it, or pass it in: a program has nowhere else to keep it",
                )
                error.constant = getattr(self.tracing.tracer.root, str(source.target), None)
                raise error
            storage = storage_of(target)
            if storage is not None:
                self.aliases.check_write(storage)
                self.shared_inputs.check_write(storage)
        if self.seeded and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise SeedError(
                "random numbers are drawn after the generator is seeded inside the model; a graph has no generator",
                hint="seed before the model is called, or draw the random numbers outside and pass them in",
            )
        if leaked(node, self.tracing):
            raise LeakedValueError(
                "a tensor made under a tensor condition or in a staged loop is used after it, stored unseen by dy2st",
                hint="let converted code store it, in a variable, an attribute or a container",
            )
        if self.depth > 1 and training_norm(node):
            raise TrainingNormError(
                "a normalisation in training mode under a tensor condition or in a staged loop",
                hint="call eval() on the module, or normalise outside",
            )

    def new(self, owner: Any) -> Any:
        """An object that was made just now."""
        if any_unions() and isinstance(owner, dict):
            all_there(self, owner)
        return super().new(owner)

    def convert_class(self, cls: type) -> None:
        """Convert what Python itself calls of a user's class, for as long as the capture runs."""
        self.classes.convert(cls)

    def case_verdict(self, value: TaggedUnion, test: Callable[[Any], Any]) -> Any:
        """What ``test``, which gives a Python bool or staged bool for each case, says of ``value``."""
        return verdict(value, test)

    def muted(self) -> Any:
        """The value of a statement that a search for refusals leaves out."""
        return RecoveryValue()

    def resumed_from_outside(self) -> None:
        """A generator that was started before the capture goes on."""
        self.advances.refuse_foreign()

    def displayed(self, owner: Any, frame: Any = None) -> Any:
        """What a display or comprehension has made."""
        frame = frame or sys._getframe(2)
        if self.looped.running and isinstance(owner, list):
            owner = owner if (made := self.looped.finished(frame)) is None else made
        if self._comprehension_open():
            owner = finished(self, owner, frame)
        return as_made(self, self.new(owner), frame)

    def mapped(self, pairs: list[tuple[Any, Any]]) -> Any:
        """What a dict display or comprehension has made, as pairs."""
        return gathered(self, dict, self.displayed(pairs, sys._getframe(2)), sys._getframe(2))

    def gathered(self, members: list[Any]) -> Any:
        """What a set display or comprehension has made, as a list."""
        return gathered(self, set, self.displayed(members, sys._getframe(2)), sys._getframe(2))

    def branch(self, test: Any, names: tuple[str, ...]) -> Any:
        """``if test``: Python, or staged."""
        decided = condition(test)
        if isinstance(decided, bool):
            return TAKEN if decided else NOT_TAKEN
        frame = sys._getframe(2)
        visits = self.trace_frames[-1].visits
        branch = StagedBranch(self, decided, names, frame, "if")
        self.sites.of(frame).branch(branch.location, route_to(frame), visits)
        return branch

    def loop(self, names: tuple[str, ...], targets: tuple[str, ...], yields: bool) -> Any:
        """A ``while`` or ``for``."""
        return self.advances.driver(CapturedLoop(self, names, targets, yields, sys._getframe(2)))

    def function(self) -> Any:
        """A function with early returns."""
        return self.advances.driver(CapturedFunction(self))

    def lazy(self, first: Any, names: tuple[str, ...], *, conjunction: bool) -> Any:
        """``first and ...`` or ``first or ...``; the rest binds ``names``."""
        decided = condition(first)
        if isinstance(decided, bool):
            return PythonLazy(first, decided, decided is conjunction)
        return StagedLazy(self, first, decided, names, conjunction, sys._getframe(2), listed=True)

    def not_(self, value: Any) -> Any:
        """``not value``."""
        return truth_number(negated(condition(value)))

    def in_(self, item: Any, container: Any) -> Any:
        """``item in container``; staged when tensors or staged numbers have to be compared."""
        return contains(item, container)

    def equal(self, a: Any, b: Any) -> Any:
        """``a == b``: of containers by their elements, of which Python would count them before it looks at any."""
        found = self._same_container(a, b)
        return (a == b) if found is None else found

    def not_equal(self, a: Any, b: Any) -> Any:
        """``a != b``."""
        inverted = inverts_equality(a) and inverts_equality(b)
        found = self.equal(a, b) if inverted else self._same_container(a, b)
        return (a != b) if found is None else self.not_(found)

    def ordered(self, a: Any, b: Any, compare: Any) -> Any:
        """``a < b``, or another of the four: of lists, tuples and dataclasses by the first elements that differ."""
        a, b = fields_of(a, b) or (a, b)
        return order_of(a, b, compare) if are_sequences(a, b) else compare(a, b)

    def concatenated(self, a: Any, b: Any) -> Any:
        """``a + b``, where one is a tuple display or a shape."""
        return concatenated(a, b)

    def _same_container(self, a: Any, b: Any) -> Any:
        """Whether two containers are equal, or None where Python can tell, or they are none."""
        for value in (a, b):
            if isinstance(value, dict):
                iterated(self, value)
        return same_elements(a, b) if are_staged(a, b) else None

    added, first, spread = added, first_element, spread

    def unpacked(self, value: Any, *targets: Any) -> Any:
        """What is unpacked into several targets."""
        return unpacked(self, value, Targets(*targets))

    def is_(self, a: Any, b: Any) -> Any:
        """``a is b``."""
        for value, other in ((a, b), (b, a)):
            if isinstance(value, Undefined):
                value.refuse()
            if isinstance(value, TaggedUnion):
                return a is b or verdict(value, lambda case, other=other: self.is_(case, other))  # type: ignore[misc]
            if isinstance(other, bool) and number_kind(value) is bool and not isinstance(value, bool):
                return value if other else self.not_(value)
            number = isinstance(value, (Number, *SYMBOLS))
            numbers = number and a is not b and number_kind(other) is not None
            if numbers or any(value is kind for kind in OUR_CLASSES):
                raise IdentityError(
                    "an identity test (is) of a data-dependent number, or of a value whose class is data-dependent",
                    hint="compare numbers with ==, and classes with isinstance() or type()",
                )
            if isinstance(value, DataRow) and a is not b and other is not None:
                raise IdentityError(
                    "an identity test (is) of a list in a dict with data-dependent keys",
                    hint="compare the keys",
                )
        if is_reference(a) and is_reference(b):
            return same_object(a, b)
        self.shared_inputs.check_identity(a, b)
        if a is not b and a is not None and b is not None and self.aliases.unsure(a, b):
            raise IdentityError(
                "an identity test (is) of what may or may not be the same object, depending on the path taken before",
                hint="compare a flag that is set in the branch",
            ).or_else(functools.partial(refer_to, a))
        return a is b

    def truth(self, value: Any) -> Any:
        """A condition where staging is impossible."""
        decided = condition(value)
        if isinstance(decided, bool):
            return decided
        frame = users_frame()
        if (running := self.looped.of(frame)) is not None:
            running.filter(decided, frame)
            return True
        if filtered(self, decided, frame) or filters(decided, frame):
            return True
        raise ComprehensionError(
            "a tensor decides a condition inside an expression that dy2st can't stage (a comprehension or a match)",
            hint="write it as a for loop with an if statement",
            location=location_of(frame),
        )

    def assertion(self, value: Any) -> Any:
        """The test of an ``assert``: a tensor's is checked when the program runs."""
        decided = condition(value)
        if isinstance(decided, torch.Tensor):
            frame = sys._getframe(2)
            error = AssertionError()
            if self.catching(error) is not None:
                raise_if(self, negated(decided), error, location_of(frame))
                return True
            if self.watched:
                raise CaughtError(
                    "an assert on a tensor stands inside a try statement, which may catch its exception",
                    hint="move it out of the try, or test for the case with an if",
                    location=location_of(frame),
                )
            self.guards.require(decided, location_of(frame))
            return True
        if not decided:
            leave_by_exception(self, sys._getframe(2), [AssertionError])
        return decided

    def call(self, function: Any) -> Any:
        """What to call in place of ``function``."""
        return gathering(self, with_cases(self, function, followed(self, function)))

    def each(self, iterable: Any, *, inner: bool) -> Any:
        """The iterable of a clause of a comprehension; of an ``inner`` one if it is not the first."""
        frame = sys._getframe(2)
        iterable = gone_over(self, iterable)
        if (begun := self.looped.begin(self, iterable, frame, inner=inner)) is not None:
            return begun
        staged = as_iterable(iterable)
        if staged is not None:
            return Comprehension(self, staged, frame, inner=inner)
        return self.advances.watched(iterable) if inner else NativeClause(self, iterable, frame)

    def element(self, value: Any) -> Any:
        """An element of a comprehension."""
        self.looped.element(value, sys._getframe(2))
        return value

    def collected(self, values: Any) -> Any:
        """The elements of a generator expression that a builtin consumes, as a list."""
        self.collecting.append(values)
        frame = values.gi_frame
        try:
            made = list(values)
        finally:
            self.collecting.pop()
        if (looped := self.looped.finished(frame, own=True)) is not None:
            return looped
        return finished(self, made, users_frame()) if self._comprehension_open() else made

    def _comprehension_open(self) -> bool:
        return bool(self.comprehensions) and self.comprehensions[-1].scope is self.trace_frames[-1]

    def target(self, owner: Any) -> Any:
        """The object of an attribute or item store."""
        return store_target(self, owner)

    def item(self, owner: Any) -> Any:
        """The object of a subscript load."""
        return load_target(owner)

    def text(self, value: Any) -> Any:
        """A text that was put together from values."""
        return text_by_case(value)

    def formatted(self, template: str, values: Any) -> Any:
        """``template % values``; what is staged has no text before the graph runs."""
        staged = [leaf for leaf in pytree.tree_leaves(values) if is_staged(leaf)]
        if staged and all(each is staged[0] and has_texts(each) for each in staged):
            union: TaggedUnion = staged[0]

            def of(case: Any) -> str:
                return str(template % pytree.tree_map_only(TaggedUnion, lambda _: case, values))

            return TaggedUnion(tag_of(union), list(map(of, cases_of(union))))
        wanted = current().part(TextParts).wanted
        if wanted and (staged or any(map(is_unknown, (template, *pytree.tree_leaves(values))))):
            return unknown_part("text", operator.mod, template, values)
        return text(f"{template} <{UNKNOWN}>") if staged else text(template % values)

    def subject(self, value: Any, *, classes: bool) -> Any:
        """The subject of a native ``match``."""
        return subject(self, value, classes=classes)

    def read(self, value: Any, name: str) -> Any:  # an Undefined knows its name
        """A load of a variable that may have no value."""
        if isinstance(value, Undefined):
            value.refuse(name)
        if isinstance(value, TaggedUnion):
            frame = sys._getframe(2)
            # Where a loop gives it a value, a later iteration has that; eager need not raise.
            heads = [scope.unset[frame, name] for scope in self.trace_frames if (frame, name) in scope.unset]
            if heads and may_be_absent(self, value):
                heads[-1].refuse(name)
            return present(self, value, frame)
        return value

    def touch_global(self, name: str, namespace: dict[str, Any]) -> None:
        """A store to a global follows."""
        self.touch(Slot.of("global", namespace, name))

    def touch_nonlocal(self, reader: Any) -> None:
        """A store to a closure's variable follows."""
        self.touch(Slot.of("cell", reader.__closure__[0]))

    def try_(self, handlers: tuple[str, ...], names: tuple[str, ...] | None) -> Any:
        """A ``try`` statement with ``handlers``, whose suites change ``names``."""
        return self.advances.driver(CapturedTry(self, handlers, names, sys._getframe(2)))

    def generator(self) -> Any:
        """A generator starts."""
        return CapturedGenerator(self, sys._getframe(2))

    def manager(self, manager: Any) -> Any:
        """The context manager of a ``with`` statement."""
        return self.advances.driver(CapturedManager(self, manager))

    def block(self, statement: str) -> Any:
        """The suite of a ``finally`` or ``with`` statement with jumps in it."""
        if statement == "with":
            return self.advances.driver(WithBlock(self, sys._getframe(2)))
        return self.advances.driver(CapturedBlock(self))
