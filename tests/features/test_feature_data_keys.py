"""Row 74: dicts and sets that have ints from data among their keys."""

# ruff: noqa: C401, C402, C416, PERF102, PLW2901, RUF007, PERF401 - the constructs under test are written as users write them
from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

TOKENS = [(torch.tensor(ids),) for ids in ([3, 1, 3, 2, 3, 1], [7, 7], [4, 5, 6, 6], [1], [0, 5, 0, 5, 0])]


def seen(ids: Tensor) -> Any:
    known = set()
    kept = []
    for token in ids.tolist():
        if token in known:
            continue
        known.add(token)
        kept.append(token)
    return torch.tensor(kept, dtype=torch.int64), len(known), sorted(known), max(known), 3 in known


def counts(ids: Tensor) -> Any:
    found = {}
    for token in ids.tolist():
        found[token] = found.get(token, 0) + 1
    most = max(found, key=found.get)
    return most, found[most], len(found), [key for key, _ in sorted(found.items(), key=lambda kv: (-kv[1], kv[0]))]


def defaults(ids: Tensor) -> Any:
    found = defaultdict(int)
    for token in ids.tolist():
        found[token % 3] += token
    return found[0], found[1], len(found), sum(found.values())


def counter(ids: Tensor) -> Any:
    found = Counter(ids.tolist())
    found.update([1, 1, 9])
    token, count = found.most_common(1)[0]
    return token, count, found[100], len(found), found.total()


def followers(ids: Tensor) -> Any:
    banned: dict[int, list[int]] = {}
    last = 0
    for token in ids.tolist():
        banned.setdefault(last, []).append(token)
        last = token
    scores = torch.zeros(8)
    for token in banned.get(last, []):
        scores[token] = -1.0
    return scores, len(banned)


def groups(ids: Tensor) -> Any:
    found = defaultdict(list)
    for place, token in enumerate(ids):
        found[int(token)].append(place * 1.5)
    means = []
    for _, places in found.items():
        means.append(sum(places) / len(places))
    return torch.tensor(means), len(found)


def depth_first(ids: Tensor) -> Any:
    edges: dict[int, list[int]] = {place: [] for place in range(8)}
    tokens = ids.tolist()
    for one, other in zip(tokens, tokens[1:], strict=False):
        edges[one].append(other)
    reached, stack = set(), [tokens[0]]
    while stack:
        node = stack.pop()
        if node in reached:
            continue
        reached.add(node)
        for other in edges[node]:
            if other not in reached:
                stack.append(other)
    return len(reached)


def pairs(ids: Tensor) -> Any:
    tokens = ids.tolist()
    known = set()
    repeated = 0
    for pair in zip(tokens, tokens[1:], strict=False):
        if pair in known:
            repeated += 1
        known.add(pair)
    return repeated, len(known), (3, 1) in known


def union_find(ids: Tensor) -> Any:
    parent = {}
    tokens = ids.tolist()
    for token in tokens:
        if token not in parent:
            parent[token] = token
    for one, other in zip(tokens, tokens[1:], strict=False):
        while parent[one] != one:
            one = parent[one]
        while parent[other] != other:
            other = parent[other]
        parent[one] = other
    return sum(1 for token in parent if parent[token] == token)


def made_at_once(ids: Tensor) -> Any:
    places = {token: place for place, token in enumerate(ids.tolist())}
    odd = {int(token) for token in ids if token % 2 == 1}
    some = {1, 2, 3, 4}
    every = set(ids.tolist())
    return (
        torch.tensor(list(places), dtype=torch.int64),
        torch.tensor(list(places.values()), dtype=torch.int64),
        len(odd),
        sorted(every & some),
        sorted(every | some),
        sorted(some - every),
        len(every - some),
        isinstance(places, dict),
        isinstance(every, (list, dict)),
    )


def remembered(ids: Tensor) -> Any:
    known = {}

    def square(token: int) -> Any:
        if token not in known:
            known[token] = torch.tensor(float(token)) ** 2
        return known[token]

    total = torch.tensor(0.0)
    for token in ids.tolist():
        total = total + square(token)
    return total, len(known)


def ordered(ids: Tensor) -> Any:
    found = OrderedDict()
    for place, token in enumerate(ids.tolist()):
        if token in found:
            del found[token]
        found[token] = place
    return (
        torch.tensor([*found.values()], dtype=torch.int64),
        found.pop(3, -1),
        len(found),
        found.pop(100, None) is None,
    )


def distinct(ids: Tensor) -> Any:
    found = set(int(token) % 4 for token in ids)
    places = dict((int(token), place) for place, token in enumerate(ids))
    return len(found), sum(places.values()), Counter(int(token) for token in ids).most_common(1)[0][1]


def copied(ids: Tensor) -> Any:
    found = dict.fromkeys(ids.tolist(), 1)
    other, deep, third = copy.copy(found), copy.deepcopy(found), found.copy()
    other[99] = deep[98] = third[97] = 1
    third[96] = 1
    members = set(ids.tolist())
    once = list(dict.fromkeys(ids.tolist()))
    more, same = copy.copy(members), set(members)
    more.add(99)
    same.add(3)
    return once[0], len(once), len(found), len(other), len(deep), len(third), len(members), len(more), len(same)


def counters(ids: Tensor) -> Any:
    found = Counter(ids.tolist())
    other = found.copy()
    other[5] += 1
    del found[100]
    del found[int(ids[0])]
    return other[77], len(found), len(other), other[5]


def of_kinds(ids: Tensor) -> Any:
    found = {"n": 0}
    for token in ids.tolist():
        found["n"] += 1
        found[token] = 2
        found[token > 3] = 4
    return found["n"], len(found), len(found.items()), 4 in found.values(), (int(ids[0]), 2) in found.items()


def algebra(ids: Tensor) -> Any:
    found = set(ids.tolist())
    return (
        sorted(found ^ {1, 9}),
        sorted(found.intersection({1, 2, 3}, {1, 3, 7})),
        sorted(found.difference({1}, {3})),
        found <= {0, 1, 2, 3, 4, 5, 6, 7},
        found.isdisjoint({9}),
    )


MODELS = [
    algebra,
    copied,
    counters,
    of_kinds,
    distinct,
    seen,
    counts,
    defaults,
    counter,
    followers,
    groups,
    depth_first,
    pairs,
    union_find,
    made_at_once,
    remembered,
    ordered,
]


@pytest.mark.slow_but_for("pairs", "seen", "groups", "followers")
@row(74)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_keys_are_data(model: Any) -> None:
    agree(model, TOKENS, (dyn(0),), paths=1 if model in (algebra, copied, counter, counters, distinct) else 2)


def dict_machine(steps: Tensor) -> Any:
    found: dict[int, int] = {5: 50}
    told = []
    for row_of_steps in steps:
        action, key, value = (int(each) for each in row_of_steps)
        if action == 0:
            found[key] = value
        elif action == 1:
            told.append(found.get(key, -1))
        elif action == 2:
            told.append(found.setdefault(key, value))
        elif action == 3:
            told.append(found.pop(key, -2))
        elif action == 4:
            if key in found:
                found[key] += 1
        elif action == 5:
            found.pop(key, None)
        elif action == 6:
            found.update([(key, value), (value, key)])
        else:
            told.append(len(found))
    return torch.tensor([0, *told]), torch.tensor(list(found), dtype=torch.int64), torch.tensor([0, *found.values()])


def set_machine(steps: Tensor) -> Any:
    found = {5}
    told = []
    for row_of_steps in steps:
        action, key, value = (int(each) for each in row_of_steps)
        if action == 0 or action == 7:
            found.add(key)
        elif action == 1:
            told.append(int(key in found))
        elif action == 2:
            found.discard(value)
        elif action == 3:
            found |= {key, 2}
        elif action == 4:
            found -= {key}
        elif action == 5:
            found.update([key, value])
        else:
            told.append(len(found))
    return torch.tensor([0, *told]), torch.tensor([0, *sorted(found)]), sum(found)


def list_machine(steps: Tensor) -> Any:
    found = defaultdict(list)
    told = []
    for row_of_steps in steps:
        action, key, value = (int(each) for each in row_of_steps)
        if action < 3:
            found[key].append(value)
        elif action == 3:
            told.append(len(found[key]))
        elif action == 4:
            found[key].extend([value, key])
        elif action == 5:
            if len(found[key]) > 1:
                told.append(found[key].pop())
        elif action == 6:
            told.append(int(value in found[key]))
        elif key in found and found[key]:  # noqa: RUF019
            found[key][0] = value
    return torch.tensor([0, *told]), len(found), torch.tensor([sum(each) for each in found.values()], dtype=torch.int64)


@pytest.mark.slow
@row(74)
@pytest.mark.parametrize("model", [dict_machine, set_machine, list_machine], ids=lambda model: model.__name__)
def test_random_histories(model: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    steps = [torch.randint(0, 8, (size, 3), generator=generator) for size in (24, 12, 30, 5, 1, 18, 26)]
    agree(model, [(each,) for each in steps], (dyn(0),))


def order_of_a_set(ids: Tensor) -> Any:
    return torch.tensor(list(set(ids.tolist())))


def text(ids: Tensor) -> Any:
    found = {}
    for token in ids.tolist():
        found[token] = 1
    return len(str(found))


def compared(ids: Tensor) -> Any:
    return set(ids.tolist()) == {1, 3}


def returned(ids: Tensor) -> Any:
    found = {}
    for token in ids.tolist():
        found[token] = 1
    return found


def of_floats(ids: Tensor) -> Any:
    return len(set((ids / 2).tolist()))


def of_tensors(ids: Tensor) -> Any:
    return len({token for token in ids})


def list_stored_then_changed(ids: Tensor) -> Any:
    found, places = {}, []
    found[int(ids[0])] = places
    places.append(1)
    return len(found[int(ids[0])])


def list_kept_then_replaced(ids: Tensor) -> Any:
    found, key = defaultdict(list), int(ids[0])
    before = found[key]
    found[key] = [1, 2]
    before.append(5)
    return len(found[key])


def same_list(ids: Tensor) -> Any:
    found, key = defaultdict(list), int(ids[0])
    return found[key] is found[key]


def change_of_a_default(ids: Tensor) -> Any:
    found: dict[int, list[int]] = {}
    for token in ids.tolist():
        found.setdefault(token, []).append(1)
    got = found.get(int(ids[0]), [])
    got.append(5)
    return len(found[int(ids[0])])


REFUSED = {
    order_of_a_set: "D2S241",
    text: "D2S241",
    compared: "D2S241",
    returned: "D2S304",
    of_floats: "D2S214",
    list_stored_then_changed: "D2S222",
    list_kept_then_replaced: "D2S241",
    same_list: "D2S223",
    change_of_a_default: "D2S222",
}


@pytest.mark.slow_for("change_of_a_default")
@row(74)
@pytest.mark.parametrize("model", REFUSED, ids=lambda model: model.__name__)
def test_what_has_no_answer_is_refused(model: Any) -> None:
    assert refuses(model, TOKENS[0], (dyn(0),)).code == REFUSED[model]


@pytest.mark.slow
@row(74)
def test_a_key_that_is_not_there_raises() -> None:
    def model(ids: Tensor) -> Any:
        found = {token: place for place, token in enumerate(ids.tolist())}
        return found[3]

    import dy2st

    program = dy2st.export(model, TOKENS[0], dynamic_shapes=(dyn(0),)).module()
    assert program(*TOKENS[0]) == 4
    with pytest.raises(Exception, match=r"3|KeyError"):
        program(*TOKENS[1])


@pytest.mark.slow
@row(74)
def test_a_list_in_a_table_that_data_picks_is_changed_in_the_table() -> None:
    def model(ids: Tensor) -> Any:
        table = {0: [9], 1: [9], 2: [9], 3: [9], 4: [9], 5: [9], 6: [9], 7: [9]}
        table[int(ids[0])].append(1)
        table[int(ids[-1])][0] = 3
        return [len(each) for each in table.values()], [each[0] for each in table.values()]

    agree(model, TOKENS, (dyn(0),), paths=1)


def least_recently_used(keys: Tensor) -> tuple[int, Tensor]:
    """A cache of two places; a hit of key 1 is the next one to go."""
    cache: OrderedDict[int, int] = OrderedDict()
    total = 0
    for i, key in enumerate(keys.tolist()):
        if key in cache:
            total += cache[key]
            cache.move_to_end(key, last=key > 1)
        else:
            cache[key] = i
            if len(cache) > 2:
                oldest, value = cache.popitem(last=False)
                total += oldest * 10 + value
    return total, torch.tensor(list(cache), dtype=torch.long)


@row(74)
def test_a_cache_that_drops_what_was_used_least_recently() -> None:
    inputs = [(torch.tensor(keys),) for keys in ([2, 3, 2, 4, 3], [1, 2, 1, 3], [5])]
    agree(least_recently_used, inputs, (dyn(0),))
