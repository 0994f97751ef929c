"""Functions of Python's library over lists of data-dependent length or order, as loops that are converted.

    for before, after in itertools.pairwise(found):
        ...

Python's own are written in C, and need all elements as objects. Each of these does what its original does, in the same
order; where that gives an iterator, the list is what it goes over (``ITERATORS``).
"""

# ruff: noqa: C420, PERF401, PERF402, RUF007 - loops and branches are what is converted
from __future__ import annotations

import collections
import copy
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from dy2st.staging.containers.sorted_functions import ON_SORTED
from dy2st.staging.routes import AROUND

AROUND.add(__file__)


def chain(*iterables: Iterable[Any]) -> list[Any]:
    """``itertools.chain``."""
    found = []
    for each in iterables:
        for item in each:
            found.append(item)
    return found


def chain_from_iterable(iterables: Iterable[Iterable[Any]]) -> list[Any]:
    """``itertools.chain.from_iterable``."""
    return chain(*iterables)


def accumulate(values: Any, func: Callable[[Any, Any], Any] | None = None, *, initial: Any = None) -> list[Any]:
    """``itertools.accumulate``."""
    values = list(values)
    step = operator.add if func is None else func
    if initial is not None:
        values = [initial, *values]
    if len(values) == 0:
        return []
    total = values[0]
    found = [total]
    for item in values[1:]:
        total = step(total, item)
        found.append(total)
    return found


def reduced(function: Callable[[Any, Any], Any], values: Any) -> Any:
    """``functools.reduce`` from the first."""
    if len(values) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = values[0]
    for each in values[1:]:
        result = function(result, each)
    return result


def reduced_from(function: Callable[[Any, Any], Any], values: Any, result: Any) -> Any:
    """``functools.reduce`` from a value."""
    for each in values:
        result = function(result, each)
    return result


def first_of(values: Any, *default: Any) -> Any:
    """``next`` of what goes over them."""
    if len(values) > 0:
        return values[0]
    if len(default) > 0:
        return default[0]
    raise StopIteration


def taken_or(there: Any, take: Callable[[], Any], default: Any) -> Any:
    """``next`` with a default: the next element where there is one."""
    return take() if there else default


def pairwise(values: Any) -> list[Any]:
    """``itertools.pairwise``."""
    values = list(values)
    return [(one, other) for one, other in zip(values, values[1:], strict=False)]


def islice(values: Any, *bounds: Any) -> list[Any]:
    """``itertools.islice``."""
    for each in bounds:
        if each is not None and each < 0:
            raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return list(values)[slice(*bounds)]


def product(first: Any, *others: Any, repeat: int = 1) -> list[Any]:
    """``itertools.product``, of two at most."""
    pools = [list(each) for each in (first, *others)] * repeat
    found: list[Any] = []
    if len(pools) == 1:
        for one in pools[0]:
            found.append((one,))
    elif len(pools) == 2:
        for one in pools[0]:
            for other in pools[1]:
                found.append((one, other))
    else:
        raise NotImplementedError("product() of three lists of data-dependent length")
    return found


def combinations(values: Any, r: int) -> list[Any]:
    """``itertools.combinations``, of two."""
    values = list(values)
    found = []
    if r != 2:
        raise NotImplementedError("combinations() of others than two")
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            found.append((values[i], values[j]))
    return found


def filter_list(function: Callable[[Any], Any] | None, values: Any) -> list[Any]:
    """``filter``."""
    found = []
    for item in values:
        if item if function is None else function(item):
            found.append(item)
    return found


def filterfalse(function: Callable[[Any], Any] | None, values: Any) -> list[Any]:
    """``itertools.filterfalse``."""
    found = []
    for item in values:
        if not (item if function is None else function(item)):
            found.append(item)
    return found


def takewhile(predicate: Callable[[Any], Any], values: Any) -> list[Any]:
    """``itertools.takewhile``."""
    found = []
    for item in values:
        if not predicate(item):
            break
        found.append(item)
    return found


def dropwhile(predicate: Callable[[Any], Any], values: Any) -> list[Any]:
    """``itertools.dropwhile``."""
    found, drops = [], True
    for item in values:
        if drops and predicate(item):
            continue
        drops = False
        found.append(item)
    return found


def groupby(iterable: Any, key: Callable[[Any], Any] | None = None) -> Any:
    """``itertools.groupby``: a group is made where a loop takes it, so that it is one for that iteration alone."""
    values = list(iterable)
    keys = values if key is None else [key(item) for item in values]
    starts: list[Any] = []
    for i in range(len(keys)):
        if len(starts) == 0 or keys[starts[-1]] != keys[i]:
            starts.append(i)
    stops = [*starts[1:], len(keys)]
    return map(lambda start, stop: (keys[start], iter(values[start:stop])), starts, stops)


def compress(values: Any, selectors: Any) -> list[Any]:
    """``itertools.compress``."""
    found = []
    for item, kept in zip(values, selectors, strict=False):
        if kept:
            found.append(item)
    return found


def starmap(function: Callable[..., Any], values: Any) -> list[Any]:
    """``itertools.starmap``."""
    found = []
    for item in values:
        found.append(function(*item))
    return found


def gcd(*numbers: Any) -> Any:
    """``math.gcd``."""
    common = 0
    for number in numbers:
        a, b = common, abs(operator.index(number))
        while b != 0:
            a, b = b, a % b
        common = a
    return common


def lcm(*numbers: Any) -> Any:
    """``math.lcm``."""
    common = 1
    for each in numbers:
        number = operator.index(each)
        common = 0 if common == 0 or number == 0 else abs(common * number) // gcd(common, number)
    return common


def prod(values: Any, *, start: Any = 1) -> Any:
    """``math.prod``."""
    found = start
    for item in values:
        found = found * item
    return found


def extreme_or(function: Callable[..., Any], values: Any, default: Any, **options: Any) -> Any:
    """``max`` or ``min`` of what may be nothing."""
    return function(values, **options) if len(values) > 0 else default


def deque_of(values: Any, maxlen: Any = None) -> collections.deque[Any]:
    """``collections.deque``."""
    found: collections.deque[Any] = collections.deque(maxlen=maxlen)
    found.extend(values)
    return found


def fromkeys(iterable: Any, value: Any = None) -> Any:
    """``dict.fromkeys``."""
    return {key: value for key in iterable}


def copied(value: Any) -> Any:
    """``copy.copy`` of a container."""
    return value if isinstance(value, tuple) else value.copy()


ON_LISTS: dict[Any, Callable[..., Any]] = {
    itertools.chain: chain,
    itertools.accumulate: accumulate,
    itertools.pairwise: pairwise,
    itertools.islice: islice,
    itertools.product: product,
    itertools.combinations: combinations,
    filter: filter_list,
    copy.copy: copied,
    collections.deque: deque_of,
    dict.fromkeys: fromkeys,
    itertools.filterfalse: filterfalse,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.compress: compress,
    itertools.groupby: groupby,
    itertools.starmap: starmap,
    math.gcd: gcd,
    math.lcm: lcm,
    math.prod: prod,
    **ON_SORTED,
}
"""What stands for each where an argument is of data-dependent length."""
_CHOOSING = (
    itertools.filterfalse,
    itertools.takewhile,
    itertools.dropwhile,
    itertools.compress,
    itertools.groupby,
    math.gcd,
    math.lcm,
)
ON_DATA = frozenset((*_CHOOSING, *ON_SORTED))
"""Those that ask numbers or elements: what stands for them is for a known number of data, too."""
ITERATORS = frozenset((filter, *(each for each in ON_LISTS if getattr(each, "__module__", "") == "itertools")))
"""Those that give an iterator: each element once."""
