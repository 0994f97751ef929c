"""Row 75: objects, dicts and lists in a list of data-dependent length, which are changed where they are."""

# ruff: noqa: PERF401, PLW2901, RUF005 - the constructs under test are written as users write them
from __future__ import annotations

import copy
import dataclasses
import functools
import heapq
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor
from torch.export import Dim

import dy2st

DYNAMIC = ({0: Dim("n", min=1)},)
VECTORS = [
    (torch.tensor(values),)
    for values in (
        [0.4, 1.3, -0.2, 0.6, 1.2, -1.7],
        [0.3],
        [-0.5, 1.0, 1.0, 0.0, 2.0, -0.1, 0.9, -0.7],
        [2.0, 2.1, 2.2],
    )
]


class Track:
    made = 0

    def __init__(self, at: Tensor) -> None:
        self.at = at
        self.hits = 1
        self.number = Track.made
        Track.made += 1

    @property
    def age(self) -> int:
        return self.hits * 10 + self.number

    def update(self, at: Tensor) -> None:
        self.at = (self.at + at) / 2
        self.hits += 1


def tracker(x: Tensor) -> Any:
    Track.made = 0
    tracks: list[Track] = []
    for v in x:
        best, nearest = None, 0.5
        for track in tracks:
            distance = abs(track.at - v)
            if distance < nearest:
                best, nearest = track, distance
        if best is None:
            tracks.append(Track(v))
        else:
            best.update(v)
        tracks = [track for track in tracks if track.at > -1.5]
    return torch.tensor([t.age for t in tracks], dtype=torch.int64), sum(
        t.at for t in tracks
    ) if tracks else torch.tensor(0.0)


def dicts(x: Tensor) -> Any:
    groups: list[dict[str, Any]] = []
    for v in x:
        for group in groups:
            if abs(group["center"] - v) < 0.5:
                group["members"].append(v)
                group["center"] = sum(group["members"]) / len(group["members"])
                group.update(count=group["count"] + 1)
                break
        else:
            groups.append({"center": v, "count": 1, "members": [v]})
    total = torch.tensor(0.0)
    for group in groups:
        for key, value in group.items():
            total = total + (value if key == "center" else len(group) * group.get("none", 0.25))
    return torch.stack([g["center"] for g in groups]), [len(g["members"]) for g in groups], total


def looked_at_later(x: Tensor) -> Any:
    held = {"a": x}
    values, items = held.values(), held.items()
    if x.sum() > 1:
        held = {"a": x * 2}
    held["a"] = x - 1
    return list(values)[-1], [value for _, value in items]


class Node:
    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.next = None


def linked(x: Tensor) -> Any:
    head = Node(x[0])
    for v in x[1:]:
        node = Node(v)
        if v < head.value:
            node.next = head
            head = node
        else:
            place = head
            while place.next is not None and place.next.value < v:
                place = place.next
            node.next = place.next
            place.next = node
    found = []
    node = head
    while node is not None:
        found.append(node.value)
        node = node.next
    return torch.stack(found)


def parents(x: Tensor) -> Any:
    @dataclass
    class Member:
        value: Tensor
        parent: Any = None
        children: int = 0

    members = [Member(x[0])]
    for v in x[1:]:
        parent = min(members, key=lambda member: abs(member.value - v))
        parent.children += 1
        members.append(Member(v, parent))
    depths = []
    for member in members:
        depth = 0
        while member.parent is not None:
            member = member.parent
            depth += 1
        depths.append(depth)
    return torch.tensor(depths, dtype=torch.int64), [member.children for member in members]


def two_lists(x: Tensor) -> Any:
    every, high = [], []
    for v in x:
        item = Node(v)
        every.append(item)
        if v > 0.5:
            high.append(item)
    for item in high:
        item.value = item.value + 10
    first = every[0]
    same = [int(item is first) for item in every]
    return torch.stack([item.value for item in every]), torch.tensor(same, dtype=torch.int64), every.index(every[-1])


def removed(x: Tensor) -> Any:
    live: list[SimpleNamespace | Track] = []
    for v in x:
        live.append(Track(v))
        worst = min(live, key=lambda track: track.at)
        worst.hits += 5
        for track in live[:]:
            if track.hits > 5 and track.at < 0:
                live.remove(track)
    return torch.tensor([track.hits for track in live], dtype=torch.int64)


def copied(x: Tensor) -> Any:
    items = [Node(v) for v in x if v > 0.5]
    old = [copy.copy(item) for item in items]
    for item in items:
        if isinstance(item, Node) and type(item) is Node:
            item.value = item.value * 2
    return sum(a.value - b.value for a, b in zip(items, old, strict=True)) + x.sum()


def set_later(x: Tensor) -> Any:
    items = [Marked(v) for v in x]
    for item in items:
        if item.value > 0.5:
            item.mark = True
    return torch.tensor([item.mark for item in items], dtype=torch.bool)


class Marked:
    mark = False

    def __init__(self, value: Tensor) -> None:
        self.value = value


@functools.total_ordering
class Job:
    def __init__(self, cost: Tensor, number: int) -> None:
        self.cost = cost
        self.number = number

    def __lt__(self, other: Job) -> bool:
        return self.cost < other.cost

    def __eq__(self, other: object) -> bool:
        return self.cost == other.cost

    __hash__ = None


def jobs(x: Tensor) -> Any:
    queue: list[Job] = []
    for number, v in enumerate(x):
        if v > -1:
            heapq.heappush(queue, Job(v, number))
    order = []
    while queue:
        job = heapq.heappop(queue)
        job.number += 100
        order.append(job.number)
    return torch.tensor(order, dtype=torch.int64)


@dataclass
class Hypothesis:
    score: Tensor
    tokens: list[int] = field(default_factory=list)


def hypotheses(x: Tensor) -> Any:
    beam = [Hypothesis(torch.tensor(0.0))]
    for v in x:
        new = []
        for old in beam:
            for token in range(2):
                if token * v > -0.3:
                    new.append(Hypothesis(old.score + token * v, old.tokens + [token]))
        beam = sorted(new, key=lambda each: each.score, reverse=True)[:3]
    return torch.stack([each.score for each in beam]), torch.tensor(beam[0].tokens, dtype=torch.int64)


def beams(x: Tensor) -> Any:
    beam: list[tuple[list[int], Any]] = [([0], torch.tensor(0.0))]
    for v in x:
        new = []
        for tokens, score in beam:
            if tokens[-1] == 2:
                new.append((tokens, score))
                continue
            for token in range(3):
                new.append((tokens + [token], score + token * v - 0.1))
        new.sort(key=lambda each: -each[1])
        beam = new[:3]
    best = max(beam, key=lambda each: each[1] / len(each[0]))
    return torch.tensor(best[0], dtype=torch.int64), best[1]


def clusters(x: Tensor) -> Any:
    found: list[list[Tensor]] = []
    for v in x:
        hit = -1
        for i, cluster in enumerate(found):
            if abs(sum(cluster) / len(cluster) - v) < 0.5:
                hit = i
                break
        if hit >= 0:
            found[hit].append(v)
        else:
            found.append([v])
    return torch.stack([torch.stack(each).mean() for each in found]), torch.tensor(
        [len(each) for each in found], dtype=torch.int64
    )


def runs(x: Tensor) -> Any:
    found = []
    run = [x[0]]
    for v in x[1:]:
        if v > run[-1]:
            run.append(v)
        else:
            found.append(run)
            run = [v]
    found.append(run)
    return torch.tensor([len(each) for each in found], dtype=torch.int64), torch.stack(
        [torch.stack(each).sum() for each in found]
    )


def longest(x: Tensor) -> Any:
    ending: list[list[Tensor]] = []
    for i in range(x.shape[0]):
        before: list[Tensor] = []
        for j in range(i):
            if x[j] < x[i] and len(ending[j]) > len(before):
                before = ending[j]
        ending.append(before + [x[i]])
    return torch.stack(max(ending, key=len))


def by_key(x: Tensor) -> Any:
    tracks: dict[int, Track] = {}
    for v in x:
        key = int(v * 2)
        if key in tracks:
            tracks[key].update(v)
        else:
            tracks[key] = Track(v)
    return torch.stack([track.at for track in tracks.values()]), torch.tensor(
        [t.hits for t in tracks.values()], dtype=torch.int64
    )


def chosen(x: Tensor) -> Any:
    first, second = Node(x), Node(-x)
    picked = first if x.sum() > 1 else second
    picked.value = picked.value + 1
    return first.value * 10 + second.value


def returned(x: Tensor) -> Any:
    found, runs_of = [], [[x[0]]]
    for v in x:
        found.append({"value": v, "count": 0})
        if v > 0.5:
            runs_of.append([v])
        else:
            runs_of[-1].append(v)
    for each in found:
        each["count"] += 1
    return found, found[0], runs_of[-1]


MODELS = [
    *(tracker, dicts, looked_at_later, linked, parents, two_lists, removed, copied, set_later, jobs, hypotheses),
    *(beams, clusters, runs, longest, by_key, chosen),
]
FAST = "looked_at_later two_lists copied set_later clusters chosen"


@pytest.mark.slow_but_for(*FAST.split())
@row(75)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_as_eager(model: Any) -> None:
    agree(model, VECTORS, DYNAMIC, whole=False)


class Base:
    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.count = 0


class Derived(Base):
    """Made as much code makes its objects."""

    def __init__(self, value: Tensor, **options: Any) -> None:
        Base.__init__(self, value)
        for name, option in options.items():
            setattr(self, name, option)


def derived(x: Tensor) -> Any:
    items = [Derived(v, weight=v * 2) for v in x]
    for item in items:
        item.count += 1
        item.weight = item.weight + item.value  # type: ignore[attr-defined]
    return torch.stack([item.weight for item in items])  # type: ignore[attr-defined]


class Announced:
    known: list[Announced] = []  # noqa: RUF012

    def __init__(self, value: Tensor) -> None:
        self.value = value
        Announced.known.append(self)


class Bound(Base):
    """A method of it that it keeps is one of the object that the constructor makes."""

    def __init__(self, value: Tensor) -> None:
        super().__init__(value)
        self.callback = self.bump

    def bump(self) -> None:
        self.count += 1


def bound(x: Tensor) -> Any:
    items = [Bound(v) for v in x]
    for item in items:
        item.count += 10
        item.callback()
    return torch.tensor([item.count for item in items])


def announced(x: Tensor) -> Any:
    Announced.known = []
    items = [Announced(v) for v in x]
    for item in items:
        item.value = item.value * 2
    return torch.stack([item.value for item in Announced.known])


def new_key(x: Tensor) -> Any:
    items = [{"value": v} for v in x]
    for item in items:
        item["twice"] = item["value"] * 2
    return torch.stack([item["twice"] for item in items])


def new_attribute(x: Tensor) -> Any:
    items = [Node(v) for v in x]
    for item in items:
        item.twice = item.value * 2  # type: ignore[attr-defined]
    return torch.stack([item.twice for item in items])  # type: ignore[attr-defined]


def as_namespace(x: Tensor) -> Any:
    items = [Node(v) for v in x]
    for item in items:
        item.value = item.value * 2
    return torch.stack([vars(item)["value"] for item in items])


def frozen(x: Tensor) -> Any:
    @dataclass(frozen=True)
    class Frozen:
        value: Tensor

    items = [Frozen(v) for v in x]
    for item in items:
        object.__setattr__(item, "value", item.value * 2)
    return torch.stack([item.value for item in items])


def in_place(x: Tensor) -> Any:
    items = [Node(v.clone()) for v in x]
    for item in items:
        item.value += 1
    return torch.stack([item.value for item in items])


def lists_returned(x: Tensor) -> Any:
    found = [[x[0]]]
    for v in x:
        if v > 0.5:
            found.append([v])
        else:
            found[-1].append(v)
    return found


def list_returned_by_its_head(x: Tensor) -> Any:
    head = Node(x[0])
    for v in x:
        node = Node(v)
        if v < head.value:
            node.next = head
            head = node
        else:
            place = head
            while place.next is not None and place.next.value < v:
                place = place.next
            node.next = place.next
            place.next = node
    return head


REFUSED = {
    list_returned_by_its_head: "D2S205",
    lists_returned: "D2S205",
    announced: "D2S222",
    bound: "D2S233",
    new_key: "D2S222",
    new_attribute: "D2S205",
    as_namespace: "D2S222",
    frozen: "D2S222",
    in_place: "D2S221",
}


@row(75)
@pytest.mark.parametrize("model", REFUSED, ids=lambda model: model.__name__)
def test_what_has_no_answer_is_refused(model: Any) -> None:
    assert refuses(model, VECTORS[0], (dyn(0),)).code == REFUSED[model]


@row(75)
def test_a_constructor_that_calls_that_of_its_base() -> None:
    agree(derived, VECTORS, DYNAMIC, whole=False)


@row(75)
def test_a_list_of_the_model_that_keeps_them_is_state() -> None:
    """The attempt that finds the objects out is given up, and what it leaves does not hide the state."""

    class Keeps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tracks: list[Track] = []

        def forward(self, x: Tensor) -> Tensor:
            for v in x:
                if v > 0.5:
                    self.tracks.append(Track(v))
            for track in self.tracks:
                track.hits += 1
            return torch.tensor([track.hits for track in self.tracks], dtype=torch.int64)

    with pytest.raises(dy2st.errors.Dy2stError) as refused:
        dy2st.to_static(Keeps())(*VECTORS[0])
    assert refused.value.code == "D2S227"


@row(75)
def test_fields_of_a_dataclass_are_asked_for_by_the_library() -> None:
    @dataclass
    class Pair:
        a: Tensor
        b: int = 0

    def model(x: Tensor) -> Any:
        pairs = [Pair(v) for v in x if v > 0.5]
        for pair in pairs:
            pair.b += 2
        found = [dataclasses.astuple(pair)[1] for pair in pairs]
        return torch.tensor(found, dtype=torch.int64), sum(pair.a for pair in pairs) + x.sum()

    agree(model, VECTORS, DYNAMIC, whole=False)


@dataclass
class Peak:
    value: Tensor
    count: int = 0


def peaks_returned(x: Tensor) -> Any:
    peaks = [Peak(v) for v in x]
    for peak in peaks:
        peak.count += 2
    return peaks, peaks[-1]


@row(75)
@pytest.mark.parametrize("model", [returned, peaks_returned], ids=lambda model: model.__name__)
def test_they_are_returned(model: Any) -> None:
    assert dy2st.check(model, VECTORS, dynamic_shapes=DYNAMIC).ok


def grown_meanwhile(x: Tensor) -> Any:
    rows = [[v] for v in x]
    chosen_row = rows[-1] if x[0] > 0 else rows[0]
    count = 0
    for v in chosen_row:
        count += 1
        if count < 4:
            chosen_row.append(v + 1)
    return count


def looked_at_meanwhile(x: Tensor) -> Any:
    rows = [[v] for v in x]
    later = iter(rows[int(x[0] > 0)])
    rows[0].append(x[0])
    return sum(later)


@row(75)
@pytest.mark.parametrize("model", [grown_meanwhile, looked_at_meanwhile], ids=lambda model: model.__name__)
def test_a_list_that_changes_while_somebody_goes_over_it_is_refused(model: Any) -> None:
    assert refuses(model, VECTORS[0], (dyn(0),)).code in ("D2S222", "D2S241")
