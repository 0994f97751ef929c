"""Statements of all kinds."""

from __future__ import annotations

from collections.abc import Callable

from consumers import Consumers
from containers import Containers
from control import Control
from functions import Functions
from kinds import Many
from objects import Objects
from suites import Lines


class Statements(Control, Functions, Containers, Objects, Consumers):
    """Writes the body of one function from all kinds of statements."""

    def statement(self, depth: int) -> Lines:
        """One statement, or a few that belong together."""
        self.shared.budget -= 1
        choose: list[Callable[[int], Lines]] = [self.assign] * 6 + [self.augment] * 3 + [self.in_place] * 3
        choose += [self.jump] * (3 if self.loops or self.returns is not None else 0)
        choose += [self.change_list] * (3 if self.scope.of(Many) else 0)
        choose += [self.call_for_effect] * (5 if self.callable() else 0)
        choose += [self.new_list, self.new_table, self.swap, self.unpack, self.select, self.tuple_of]
        choose += [self.new_record] * (2 if self.shared.records else 0)
        choose += [self.delete, self.look, self.bring_key]
        if depth > 0 and self.shared.budget > 0:
            choose += [self.branch] * 6 + [self.for_] * 5 + [self.while_] * 3 + [self.maybe] * 2
            choose += [self.match_, self.try_, self.with_, self.walrus, self.inner_function, self.lambda_]
            choose += [
                self.nested_list,
                self.keys_by_path,
                self.tallied,
                self.stored_by_method,
                self.asked,
                self.asked,
                self.half_way,
                self.caught_quotient,
                self.comprehension,
                self.count_global,
                self.partial,
                self.recursion,
            ]
            choose += [self.mixed, self.sized]
        return self.pick(choose)(depth)
