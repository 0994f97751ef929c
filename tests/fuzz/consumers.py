"""Statements that ask for some of the elements of something only: ``any``, ``all``, iterators left half-way."""

from __future__ import annotations

from assignments import Assignments
from expressions import FLOATS
from kinds import BOOL, INT, Tensor
from suites import Lines, indented


class Consumers(Assignments):
    """Writes them, with elements that change something."""

    def asked(self, depth: int) -> Lines:
        """``any`` or ``all`` of elements that count how often they were asked, or that ``:=`` keeps."""
        place, result, count, each = self.name("o"), self.name("y"), self.name("y"), self.name("e")
        scalar = lambda: self.of(Tensor(), 1)  # noqa: E731
        elements = f"({', '.join(scalar() for _ in range(self.choices.number(2, 3)))})"
        test = self.pick([f"{each} > {self.pick(FLOATS)}", f"{each} < {scalar()}", f"{place}.last > {each}"])
        which = self.pick(["any", "all"])
        lines = [f"{place} = Tally()", f"{place}.see({scalar()})"]
        if self.choices.chance(30):
            kept = self.name("y")
            lines = [f"{kept} = {scalar()}", f"{result} = {which}(({kept} := {each}) > 0.5 for {each} in {elements})"]
            self.bind(result, BOOL)
            self.bind(kept, Tensor())
            return lines
        noted = self.pick([f"({place}.see({each}), {test})[1]", f"{test} and {place}.see({each})", test])
        condition = f" if ({test})" if self.choices.chance(20) else ""
        lines += [f"{result} = {which}({noted} for {each} in {elements}{condition})", f"{count} = {place}.count"]
        self.bind(result, BOOL)
        self.bind(count, INT)
        return lines

    def half_way(self, depth: int) -> Lines:
        """An iterator that a loop leaves, and what is left of it."""
        place, result, each = self.name("l"), self.name("y"), self.name("e")
        scalar = lambda: self.of(Tensor(), 1)  # noqa: E731
        lines = [f"{place} = iter(({scalar()}, {scalar()}, {scalar()}))"]
        lines += [f"for {each} in {place}:", *indented([f"if {self.truth(1)}:", *indented(["break"])])]
        left = [f"sum({place}, {scalar()})", f"next({place}, {scalar()})", f"sum([{each}, *{place}])"]
        self.bind(result, Tensor())
        return [*lines, f"{result} = {self.pick([each] * 6 + left)}"]
