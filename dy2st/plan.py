"""One search over the ways to stage a model, each tried by an export of it. Most models have one: the plain way.

Where there is a choice, code that stages asks the plan of the running export:

* ``takes(alternative)``: of two stagings of one expression, neither is right for all code that goes on with it;
* ``peels(site)``: the first iteration of a loop is taken out of it, since it builds what the others change.

    keys = []
    while not done:
        if len(keys) == 0: keys.append(key)
        else: keys[0] = torch.cat([keys[0], key])

A list's length is Python's before the first iteration and after each other, but not the same, and a loop's state has
one structure. Behind a copy of the first iteration it does.

An attempt ends well, or with a ``Revision``: it has found out by itself what to do otherwise, and the changed plan is
tried. Or it is refused. Then what it has met is tried otherwise: each combination of the alternatives, next the loops
that have peculiar states, peeled. If nothing helps, the refusal of the plain way is reported, since that is about the
user's code as it stands. Revisions can't go on for ever, each has a bound of its own; refusals have ``MOST_REFUSALS``.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from types import CodeType
from typing import Any, NoReturn, TypeVar

from dy2st.errors import Dy2stError, UsageError
from dy2st.operators.export_session import current
from dy2st.operators.jumps import Jump

T = TypeVar("T")

MOST_PEELINGS = 6
# Each of them doubles what is traced.
MOST_SIZES_APART = 2


class Alternative(enum.Enum):
    """The other one of two stagings, for a program that the first way of is refused."""

    # x[t : t + k] has k elements, tested when the program runs: eager gives a shorter piece at the end. Plainly its
    # size is data, which most code that goes on with it can't take.
    WHOLE_PIECES = enum.auto()
    # The greater of two sizes is a number of the graph. Plainly it is a size, of which torch can say more, but in an
    # arm that the example does not take it can't be told that it is one of the two.
    EXTREME_SIZES_ARE_NUMBERS = enum.auto()
    # The sum of a declared size's elements is a tensor, and the program fails where there are none. Plainly it is the
    # int 0 there, and most programs can't go on with a tensor or that.
    SUMS_HAVE_ELEMENTS = enum.auto()
    # A result of one number of dimensions on some paths and of another on others is either, by path. Plainly it has to
    # be of one, which a file can say more simply.
    RESULTS_OF_ANY_RANK = enum.auto()
    # What is a number on some paths and a tensor on others is either, by path. Plainly the number goes on as a tensor,
    # which is of the same value, but for whoever gets it as a result of another type.
    NUMBERS_STAY_NUMBERS = enum.auto()
    # squeeze() of a declared size gives one number of dimensions or another, by path. Plainly the size is one or not,
    # as it is in the example: most code is written for one of the two.
    SQUEEZED_BY_SIZE = enum.auto()


# All combinations of alternatives, plainly and peeled. Each attempt takes as long as an export, but few models meet
# more than two.
MOST_REFUSALS = 2 * 2 ** len(Alternative)


class Revision(Jump):
    """The attempt is given up, since it has found out what to do otherwise: ``revise`` changes the plan."""

    def __init__(self, revise: Callable[[], None]) -> None:
        super().__init__()
        self.revise = revise


class Plan:
    """Which way is tried now, and what is known of the others."""

    def __init__(self) -> None:
        self.taken: frozenset[Alternative] = frozenset()
        self.met: set[Alternative] = set()
        # By site: whether the loop's first iteration is taken out; one that is missing here has not been looked at.
        self.peeled: dict[Any, bool] = {}
        # Loops that carry something of another structure than they began with, or of which nothing else is known yet.
        self.suspects: set[Any] = set()
        # Comprehensions that are loops which append, since an element changes what the next one reads.
        self.looped: set[Any] = set()
        # Where dicts and sets are made that have data-dependent keys.
        self.keyed: set[Any] = set()
        # Those of them whose values are lists.
        self.keyed_lists: set[Any] = set()
        # Where one of several objects is chosen by data, and changed.
        self.by_path: set[Any] = set()
        # Classes whose objects are made as references, each with the attributes that they get later.
        self.referred: dict[str, set[str]] = {}
        # The keys of dicts that are made as references.
        self.records: set[tuple[str, ...]] = set()
        # Where lists are made as references (code and instruction), each with the table that these are in.
        self.listed: dict[Any, Any] = {}
        # Generators that are run to their end before their consumer goes on, by file and first line.
        self.gathered: set[tuple[str, int]] = set()
        # Whether a model that is called without gradients switches them on for a while.
        self.switches_gradients_on = False
        # Conditions on declared sizes that the model's code is to be traced under apart, if any may.
        # With the copies of the branches on them, as reports name these.
        self.sizes_apart: dict[Any, dict[Any, Any]] = {}
        self.keeps_sizes_together = False
        self._peelings = 0
        # Loops whose first iteration was taken out to no avail; those that are tried so once more, and stay so.
        self._undone: set[Any] = set()
        self._pinned: set[Any] = set()
        # Combinations of alternatives that are left for the loops as they are peeled now.
        self._untried: list[frozenset[Alternative]] | None = None

    # ---- asked while a model is staged

    def takes(self, alternative: Alternative) -> bool:
        """Whether the alternative is to be taken, where there is a choice."""
        self.met.add(alternative)
        return alternative in self.taken

    def has_taken(self, alternative: Alternative) -> bool:
        """Whether the alternative is taken, where that makes a difference only to what is met later."""
        return alternative in self.taken

    def peels(self, site: Any) -> bool:
        """Whether a loop's first iteration is taken out of it."""
        return self.peeled.get(site, False)

    def may_repeel(self, site: Any) -> bool:
        """Whether the loop at ``site`` may be tried the other way round."""
        if site in self._pinned:
            return False
        return self.peeled.get(site) is not False and self._peelings < MOST_PEELINGS

    def repeel(self, site: Any) -> NoReturn:
        """Give the attempt up for one that takes out the first iteration of the loop, or no longer does."""

        def revise() -> None:
            self._peelings += 1
            self.peeled[site] = site not in self.peeled
            if not self.peeled[site]:
                self._undone.add(site)
            self._plainly()

        raise Revision(revise)

    def loop_over(self, site: Any) -> NoReturn:
        """Give the attempt up for one in which the comprehension at ``site`` is a loop."""

        def revise() -> None:
            self.looped.add(site)
            self._plainly()

        raise Revision(revise)

    def key_by_data(self, site: Any, *, lists: bool = False) -> NoReturn:
        """Give the attempt up for one in which a dict (of ``lists``) or set of ``site`` has data-dependent keys."""

        def revise() -> None:
            self.keyed.add(site)
            self.keyed_lists.update([site] if lists else ())
            self._plainly()

        raise Revision(revise)

    def choose_by_path(self, site: Any) -> NoReturn:
        """Give the attempt up for one in which the objects that ``site`` chooses among stay what they are."""

        def revise() -> None:
            self.by_path.add(site)
            self._plainly()

        raise Revision(revise)

    def refer_to(self, cls: str, attribute: str | None = None) -> NoReturn:
        """Give the attempt up for one in which objects of a class are references, and have an ``attribute``, too."""

        def revise() -> None:
            self.referred.setdefault(cls, set()).update([] if attribute is None else [attribute])
            self._plainly()

        raise Revision(revise)

    def refer_to_records(self, keys: tuple[str, ...]) -> NoReturn:
        """Give the attempt up for one in which dicts with these keys are references."""

        def revise() -> None:
            self.records.add(keys)
            self._plainly()

        raise Revision(revise)

    def refer_to_lists(self, tables: dict[Any, Any]) -> NoReturn:
        """Give the attempt up for one in which lists that are made at some sites are references, into these tables."""

        def revise() -> None:
            self.listed |= tables
            self._plainly()

        raise Revision(revise)

    def gathers(self, code: Any) -> bool:
        """Whether what a generator with this code yields is gathered in a list."""
        return isinstance(code, CodeType) and (code.co_filename, code.co_firstlineno) in self.gathered

    def gather(self, code: CodeType) -> None:
        """Give the attempt up for one in which it is, if this one is none of these."""

        def revise() -> None:
            self.gathered.add((code.co_filename, code.co_firstlineno))
            self._plainly()

        if not self.gathers(code):
            raise Revision(revise)

    def take_sizes_apart(self, test: Any, copies: dict[Any, Any]) -> None:
        """Give the attempt up for one that has the model's code twice, by a condition on sizes."""
        if self.keeps_sizes_together or len(self.sizes_apart) == MOST_SIZES_APART or test in self.sizes_apart:
            return

        def revise() -> None:
            self.sizes_apart[test] = copies
            self._plainly()

        raise Revision(revise)

    def switch_gradients_on(self) -> NoReturn:
        """Give the attempt up for one that starts without gradients, as the call of the model does."""

        def revise() -> None:
            self.switches_gradients_on = True
            self._plainly()

        raise Revision(revise)

    # ---- the search

    def carry_out(self, attempt: Callable[[], T]) -> T:
        """The first result of ``attempt()`` that is not refused.

        Raises:
            Dy2stError: what the plain way is refused for, if each other one is refused too.
        """
        reported: Dy2stError | None = None
        final = False
        for _ in range(MOST_REFUSALS):
            try:
                return self._revised(attempt)
            except UsageError:
                raise
            except Dy2stError as refused:
                plain = not self.taken and True not in self.peeled.values()
                if reported is None or (plain and not final):
                    reported, final = refused, plain
            if not self._another():
                break
        assert reported is not None
        raise reported

    def _revised(self, attempt: Callable[[], T]) -> T:
        while True:
            try:
                return attempt()
            except Revision as revision:
                revision.revise()
            except UsageError:
                raise
            except Dy2stError:
                if not self.sizes_apart:
                    raise
                # That was no way out: a program that raises for some sizes is better than none.
                self.sizes_apart.clear()
                self.keeps_sizes_together = True

    def _another(self) -> bool:
        """After a refusal: whether there is another way to try, which is the plan from now on."""
        if self._untried is None:
            met = sorted(self.met, key=lambda alternative: alternative.value)
            sizes = range(1, len(met) + 1)
            self._untried = [frozenset(found) for n in sizes for found in itertools.combinations(met, n)]
        if self._untried:
            self.taken = self._untried.pop(0)
            return True
        peeled = [site for site, whether in self.peeled.items() if whether]
        suspects = [] if peeled else [site for site in self.suspects if site not in self.peeled]
        self.peeled.update(dict.fromkeys(peeled, False) | dict.fromkeys(suspects, True))
        again = [] if peeled or suspects else [site for site in self._undone if site not in self._pinned]
        self._pinned.update(again)
        self.peeled.update(dict.fromkeys(again, True))
        self._plainly()
        return bool(peeled or suspects or again)

    def _plainly(self) -> None:
        self.taken, self.met, self._untried = frozenset(), set(), None


def plan() -> Plan:
    """The plan of the running export."""
    return current().part(Plan)
