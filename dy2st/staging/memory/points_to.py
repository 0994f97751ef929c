"""What may share memory in a loop: a fixpoint over its iterations, of pairs.

A *cell* is some memory: of a variable at the head of an iteration (named by the variable itself), memory from outside
of the loop, or memory that an iteration has made, such as the result of a branch. A *pair* is two cells that may be the
same. Pairs say more than a set of possible targets for each variable does: with ``a, b = b, a`` both are either of two
buffers, but never the same one.

Source: may-alias analysis by pairs, W. Landi and B. Ryder, "Pointer-induced aliasing" (POPL 1991).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

Cell = Hashable
Pair = tuple[Cell, Cell]


@dataclass(frozen=True)
class Binding:
    """The cells of a variable before the loop and at the end of an iteration; None where it has none."""

    before: Cell | None
    end: Cell | None


class PointsTo:
    """The pairs of variables, with each other or with memory from outside; of each pair both orders.

    ``before``: those in the first iteration. ``end``: at the end of any. ``head``: at the head of any, which is those
    before the loop and at the end of an iteration that another one follows.
    ``related`` says what a cell may be the same as, as far as the run of the body that found the bindings knows it;
    ``staying`` says the same of the paths that do not leave the loop. ``outside`` is memory from before the loop: it is
    the same in each iteration, while other memory is not.
    """

    def __init__(
        self,
        bindings: Mapping[Cell, Binding],
        related: Callable[[Cell], Iterable[Cell]],
        outside: Collection[Cell],
        staying: Callable[[Cell], Iterable[Cell]] | None = None,
    ) -> None:
        self.outside = outside
        staying = related if staying is None else staying
        first: dict[Cell, set[Cell]] = defaultdict(set)
        # What is there before the loop, named after the first variable that has it.
        self._names: dict[Cell, Cell] = {}
        self._next: dict[Cell, set[Cell]] = defaultdict(set)
        for variable, binding in bindings.items():
            if binding.before is not None:
                first[binding.before].add(variable)
                self._names.setdefault(binding.before, ("before", variable))
            if binding.end is not None:
                self._next[binding.end].add(variable)
        self.before = set(self._alike(first, related))
        self.end: set[Pair] = set(self._alike(self._next, related))
        self.head = self.before | set(self._alike(self._next, staying))
        left = [*self.head]
        while left:
            one, other = left.pop()
            for pair in _unlike(self._holders(self._next, one), self._holders(self._next, other)):
                self.end.add(pair)
                if pair not in self.head:
                    self.head.add(pair)
                    left.append(pair)

    @property
    def signature(self) -> set[Pair]:
        """The pairs at the head, as far as they mean the same for another run of the body.

        A list is stacked anew for each run: what is before the loop goes by the name of its variable.
        """
        return {(self._names.get(one, one), self._names.get(other, other)) for one, other in self.head}

    def _holders(self, variables: Mapping[Cell, set[Cell]], cell: Cell) -> set[Cell]:
        """The variables that a cell is given to, and the cell itself, if it stays."""
        return variables.get(cell, set()) | ({cell} if cell in self.outside else set())

    def _alike(self, variables: Mapping[Cell, set[Cell]], related: Callable[[Cell], Iterable[Cell]]) -> Iterable[Pair]:
        for cell in variables:
            same = self._holders(variables, cell)
            for other in (cell, *related(cell)):
                yield from _unlike(same, self._holders(variables, other))


def _unlike(some: Iterable[Cell], others: Iterable[Cell]) -> Iterable[Pair]:
    for one, other in product(some, others):
        if one != other:
            yield one, other
            yield other, one
