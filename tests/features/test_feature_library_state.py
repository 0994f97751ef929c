"""Objects of the standard library that a path changes, and functions that library code calls back."""

from __future__ import annotations

import bisect
import configparser
import copy
import csv
import functools
import graphlib
import heapq
import io
import itertools
import operator
import queue
import threading
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor
from torch.export import Dim

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5, 0.25], [2.0, 2.5, -1.0, 0.5])]
DYNAMIC = ({0: Dim.DYNAMIC},)


LAYERS = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid())


class Calls:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, value: Any) -> Any:
        self.count += 1
        return value * 2

    def counted(self) -> int:
        """A method without arguments."""
        self.count += 1
        return self.count

    def negative(self, value: Any) -> Any:
        """A method that does so."""
        self.count += 1
        return -value


def counters(x: Tensor) -> Any:
    c = Counter("abca")
    if x.sum() > 1:
        c.update("aa")
        list(map(c.update, "ab"))
    else:
        c.subtract("a")
        functools.partial(c.update, b=3)()
    for e in x:
        if e > 0:
            c.update(["c"])
    return c["a"] * x[0], c["b"], c["c"]


def chains(x: Tensor) -> Any:
    c = ChainMap({"a": 1}, {"b": 3}).new_child({"a": 2})
    if x.sum() > 1:
        c["a"] = 5
        c.maps[2]["b"] = 4
    return c["a"] * x[0], c["b"]


def queues(x: Tensor) -> Any:
    by_priority: Any = queue.PriorityQueue()
    by_priority.put(2)
    in_order: Any = queue.Queue()
    in_order.put(x[0])
    event = threading.Event()
    if x.sum() > 1:
        by_priority.put(1)
        in_order.get()
        in_order.put(x[1])
        event.set()
    else:
        by_priority.put(3)
    return by_priority.get(), in_order.get(), event.is_set()


def ordered(x: Tensor) -> Any:
    od = OrderedDict([("a", x[0]), ("b", x[1])])
    for key in list(od):
        if od[key] > 0:
            od[key] = od[key] * 2
    kept: defaultdict[str, list[Tensor]] = defaultdict(list)
    last: deque[Tensor] = deque([x[0]], maxlen=2)
    if x.sum() > 1:
        kept["a"].append(x[0])
        last.append(x[1])
    else:
        kept["a"].append(x[1])
        last.appendleft(x[1])
    return od["a"], od["b"], kept["a"][0], last[0]


def called_back(x: Tensor) -> Any:
    calls = Calls()
    if x.sum() > 1:
        y = next(iter(map(calls, [x[0], x[1]])))
        y = y + sorted([3, 1, 2], key=calls)[1]
        y = y + next(itertools.takewhile(calls, [1, 2]))
        y = y + len(list(iter(calls.counted, 8)))
        y = y + heapq.nlargest(1, [1, 2, 5], key=calls.negative)[0]
    else:
        y = functools.reduce(lambda a, b: calls.negative(a) + b, [x[0], x[1], x[2]])
        y = functools.reduce(lambda value, layer: layer(value), LAYERS, y)
        y = y + len(next(list(group) for _, group in itertools.groupby([1, 1, 2], key=calls)))
        y = y + bisect.bisect_left([1, 2, 3], -2, key=calls.negative)
    y = y + sorted("ba", key=functools.cmp_to_key(lambda a, b: calls(ord(a)) - ord(b))).index("a")
    return y, calls.count


class Signed:
    """Looks at its value when it is made."""

    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.sign = 1 if value > 0 else -1


def made_by_classes(x: Tensor) -> Any:
    made = list(map(Signed, [x[0], x[1], x.max()]))
    whole = list(map(int, [x[0] * 3, x[1]])), list(map(bool, [x[0], x[1]])), list(map(float, [x[0]]))
    return sum(each.sign for each in made), made[1].value, whole


def keys_are_asked_for_once(x: Tensor) -> Any:
    calls = Calls()
    numbers = [3, 1, 2]
    if x.sum() > 1:
        numbers.sort(key=calls, reverse=True)
    best = max({4, 1}, key=calls), min((n for n in (1, 5)), key=calls.negative), max([2, 7], key=calls, default=0)
    first = sorted([x[0], x[1]], key=calls)[1], max(range(3), key=lambda i: calls(x[i]))
    items = sorted({"b": 2, "a": 1}.items(), key=lambda pair: pair[1])[1][1]
    return numbers[0], *best, *first, items, calls.count, min(dict(enumerate(x[:2])).items(), key=lambda p: p[1])[0]


def only_looked_at(x: Tensor) -> Any:
    """What may be one list or another one is given to functions that leave it as it is."""
    rows = [x.sum(), x.max()]
    if x.sum() > 0:
        rows = [x.max() * 3, x.sum()]
    while x.sum() < 10:
        added = copy.copy(rows)[0].abs() + functools.reduce(operator.add, itertools.chain(rows, [x[0]])).abs()
        x = x + added + 1
        rows = [x.max(), rows[0]]
    copied = copy.copy(rows)
    copied.append(x.min())
    return rows, copied, operator.concat(rows, [x]), sorted(each.item() for each in rows)


@row(30, 41, 47)
@pytest.mark.parametrize(
    "model",
    [counters, chains, queues, ordered, called_back, made_by_classes, keys_are_asked_for_once, only_looked_at],
    ids=lambda model: model.__name__,
)
def test_what_a_path_changes(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, DYNAMIC)


def of_a_parser(x: Tensor) -> Tensor:
    parser = configparser.ConfigParser()
    parser["s"] = {"a": "1"}
    if x.sum() > 1:
        parser.set("s", "a", "2")
    return x * int(parser.get("s", "a"))


def of_a_graph(x: Tensor) -> Tensor:
    graph = graphlib.TopologicalSorter({"a": {"b"}})
    if x.sum() > 1:
        graph.add("c", "a")
    return x * len(list(graph.static_order()))


def by_a_writer(x: Tensor) -> Tensor:
    text = io.StringIO()
    writer = csv.writer(text)
    if x.sum() > 1:
        writer.writerow([1])
    return x * len(text.getvalue())


def by_print(x: Tensor) -> Tensor:
    text = io.StringIO()
    if x.sum() > 1:
        print("abc", file=text)
    return x * len(text.getvalue())


def printed_values(x: Tensor) -> Tensor:
    text = io.StringIO()
    print(x.sum(), file=text)
    return x * len(text.getvalue())


def of_a_lock(x: Tensor) -> Tensor:
    lock = threading.Lock()
    if x.sum() > 1:
        lock.acquire()
    return x * lock.locked()


@row(41, 46)
@pytest.mark.parametrize(
    "model",
    [of_a_parser, of_a_graph, by_a_writer, by_print, printed_values, of_a_lock],
    ids=lambda model: model.__name__,
)
def test_changes_inside_of_library_objects_are_refused(model: Callable[[Tensor], Tensor]) -> None:
    assert refuses(model, INPUTS[0], DYNAMIC).code == "D2S226"


TOTAL = 0


def plus_one(value: Any) -> Any:
    """Changes a global."""
    global TOTAL  # noqa: PLW0603
    TOTAL += 1
    return value + 1


@row(30, 47, 54)
def test_what_a_callback_changes_around_it() -> None:
    def model(x: Tensor) -> Any:
        asked = 0

        def ask(a: Any, b: Any) -> Any:
            nonlocal asked
            asked += 1
            return a + b

        y = x[0]
        if x.sum() > 1:
            y = functools.reduce(ask, [x[0], x[1], x[2]])
        before = TOTAL
        if y > 0:
            y = functools.reduce(lambda a, b: plus_one(a) + b, [x[0], x[1]])
        return y, asked, TOTAL - before

    agree(model, INPUTS, DYNAMIC)


def of_a_callback(x: Tensor) -> Tensor:
    thread = threading.Thread(target=plus_one, args=(1,))
    if x.sum() > 1:
        thread.start()
        thread.join()
    return x + TOTAL


@row(46, 54)
def test_a_thread_under_a_condition_is_refused() -> None:
    assert refuses(of_a_callback, INPUTS[0], DYNAMIC).code == "D2S226"
