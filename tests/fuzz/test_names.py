"""A program means the same whatever its names are: under all those that our own code uses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import oracle
import profiles
import pytest
import renaming
import roles
import torch
from choices import seeded
from programs import program

# In the order of our code's own use: a loop's flag, keys, parameters of functions that hand on keywords, slots, labels.
WELL_KNOWN = ["go", "list", "key", "function", "capture", "value"]
EACH = 30
ONNX_EACH = 6
"""Each so-manieth program also runs on onnxruntime: writing the file takes most of the time."""
SHARE = 1 if profiles.is_nightly() else 3
"""Each so-manieth batch of names is tried; near names are apart, so that one batch has a few of each kind."""

KINDS = [roles.variables, roles.members]


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """One thread, and exports that share torch's table of translations."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with oracle.quick_exports():
        yield
    torch.set_num_threads(threads)


def batches() -> list[list[str]]:
    """The names, some at a time; near ones apart, so that a batch has names of many kinds."""
    names = [name for name in renaming.meeting_names() if name not in roles.AVOID]
    count = -(-len(names) // EACH)
    # The programs' own methods have a ``self``, which an input given by keyword may not hide from torch's code.
    return [[name for name in names[start::count] if name != "self"] for start in range(count)]


@pytest.mark.slow_but_for("members")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_well_known_names_in_every_role(kind: Callable[[list[str]], str]) -> None:
    outcome = oracle.judge(kind(WELL_KNOWN))
    assert outcome.kind == oracle.EQUAL, outcome.text


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("number", range(0, len(batches()), SHARE))
def test_strings_and_parameters_of_our_code_in_every_role(kind: Callable[[list[str]], str], number: int) -> None:
    outcome = oracle.judge(kind(batches()[number]), onnx=number % (SHARE * ONNX_EACH) == 0, seconds=300)
    assert outcome.kind == oracle.EQUAL, outcome.text


def test_renaming_changes_names_only() -> None:
    source = "def model(x, n):\n    y = {'a': x.sum()}\n    while n > 0:\n        n = n - y['a']\n    return n\n"
    assert renaming.renamed(source, ["go", "x", "env", "sum", "jump", "key"]) == (
        "def model(jump, env):\n    key = {'go': jump.sum()}\n"
        "    while env > 0:\n        env = env - key['go']\n    return env"
    )


def check_renamed(numbers: Iterator[int], names: list[str], programs: int) -> None:
    """Random programs and the same under other names: one verdict. ``names`` loses those that are used."""
    for count in range(programs):
        if not names:
            return
        source = program(seeded(next(numbers)))
        found = renaming.renamed(source, names)
        before, after = (oracle.judge(text, onnx=count % ONNX_EACH == 0) for text in (source, found))
        same = before.kind == after.kind and before.what.split()[0] == after.what.split()[0]
        assert same, f"{before.what}, and under other names {after.what}\n\n{found}\n\n{after.text}"


def numbers_from(seed: int) -> Iterator[int]:
    """Seeds of programs."""
    generator = random.Random(seed)
    while True:
        yield generator.randrange(2**32)


@pytest.mark.slow
def test_random_programs_under_other_names() -> None:
    names = renaming.our_names()
    random.Random(0).shuffle(names)
    check_renamed(numbers_from(0), names, 4)
