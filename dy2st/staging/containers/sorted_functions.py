"""Functions of Python's library over heaps and sorted lists, as loops that are converted.

Each does what its original does, in the same order of comparisons, so that equal elements end where Python has them.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any

from dy2st.staging.routes import AROUND

AROUND.add(__file__)


def heappush(heap: list[Any], item: Any) -> None:
    """``heapq.heappush``."""
    heap.append(item)
    _towards_the_root(heap, 0, len(heap) - 1)


def heappop(heap: list[Any]) -> Any:
    """``heapq.heappop``."""
    if len(heap) == 0:
        raise IndexError("index out of range")
    last = heap.pop()
    if len(heap) > 0:
        least = heap[0]
        heap[0] = last
        _towards_the_leaves(heap, 0)
        last = least
    return last


def heapreplace(heap: list[Any], item: Any) -> Any:
    """``heapq.heapreplace``."""
    if len(heap) == 0:
        raise IndexError("index out of range")
    least = heap[0]
    heap[0] = item
    _towards_the_leaves(heap, 0)
    return least


def heappushpop(heap: list[Any], item: Any) -> Any:
    """``heapq.heappushpop``."""
    if len(heap) > 0 and heap[0] < item:
        least = heap[0]
        heap[0] = item
        _towards_the_leaves(heap, 0)
        item = least
    return item


def heapify(heap: list[Any]) -> None:
    """``heapq.heapify``."""
    for place in range(len(heap) // 2 - 1, -1, -1):
        _towards_the_leaves(heap, place)


def nsmallest(n: Any, values: Any, key: Callable[[Any], Any] | None = None) -> list[Any]:
    """``heapq.nsmallest``."""
    return sorted(values, key=key)[: max(n, 0)]


def nlargest(n: Any, values: Any, key: Callable[[Any], Any] | None = None) -> list[Any]:
    """``heapq.nlargest``."""
    return sorted(values, key=key, reverse=True)[: max(n, 0)]


def _towards_the_root(heap: list[Any], start: Any, place: Any) -> None:
    item = heap[place]
    while place > start:
        parent = (place - 1) // 2
        above = heap[parent]
        if not item < above:
            break
        heap[place] = above
        place = parent
    heap[place] = item


def _towards_the_leaves(heap: list[Any], place: Any) -> None:
    end, start = len(heap), place
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _towards_the_root(heap, start, place)


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None) -> Any:
    """``bisect.bisect_left``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        value = a[middle] if key is None else key(a[middle])
        if value < x:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Callable[[Any], Any] | None = None) -> Any:
    """``bisect.bisect_right``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low, high = lo, len(a) if hi is None else hi
    while low < high:
        middle = (low + high) // 2
        value = a[middle] if key is None else key(a[middle])
        if x < value:
            high = middle
        else:
            low = middle + 1
    return low


def insort_left(a: list[Any], x: Any, *bounds: Any, key: Callable[[Any], Any] | None = None) -> None:
    """``bisect.insort_left``."""
    a.insert(bisect_left(a, x if key is None else key(x), *bounds, key=key), x)


def insort_right(a: list[Any], x: Any, *bounds: Any, key: Callable[[Any], Any] | None = None) -> None:
    """``bisect.insort_right``."""
    a.insert(bisect_right(a, x if key is None else key(x), *bounds, key=key), x)


def sorted_by_comparison(values: Any, keys: Any, reverse: bool) -> tuple[list[Any], Any]:
    """``sorted`` by keys that are objects with a ``__lt__`` of their own, and whether that is a strict weak order.

    If not (a cost is NaN, say), the result depends on what Python happens to compare.
    """
    items, keys = list(values), list(keys)
    if reverse:
        items.reverse()
        keys.reverse()
    for i in range(1, len(items)):
        item, key, place = items[i], keys[i], i
        while place > 0:
            if not key < keys[place - 1]:
                break
            items[place] = items[place - 1]
            keys[place] = keys[place - 1]
            place -= 1
        items[place] = item
        keys[place] = key
    weak = True
    for i in range(len(items)):
        equal = True
        for j in range(i + 1, len(items)):
            equal = equal and not keys[j - 1] < keys[j]
            if keys[j] < keys[i] or equal == (keys[i] < keys[j]):
                weak = False
    if reverse:
        items.reverse()
    return items, weak


def extreme_by_comparison(name: str, values: Any, keys: Any) -> Any:
    """``max`` or ``min`` by keys that are objects with an order of their own."""
    place = 0
    for i in range(1, len(keys)):
        if keys[i] > keys[place] if name == "max" else keys[i] < keys[place]:
            place = i
    return values[place]


ON_SORTED: dict[Any, Callable[..., Any]] = {
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
    heapq.heapify: heapify,
    heapq.nsmallest: nsmallest,
    heapq.nlargest: nlargest,
    bisect.bisect_left: bisect_left,
    bisect.bisect_right: bisect_right,
    bisect.insort_left: insort_left,
    bisect.insort_right: insort_right,
}
"""What stands for each where a list is of data-dependent length, or its elements are data."""
