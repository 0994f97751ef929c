"""Random typed programs with control flow on tensors: equal in every form, or refused at a line of theirs."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator

import aliases
import oracle
import profiles
import pytest
import torch
from choices import seeded
from hypothesis import given, note, seed
from hypothesis import strategies as st
from programs import program
from shrinking import shrink

ONNX_EACH = 3
"""Each so-manieth program also runs on onnxruntime: writing the file takes most of the time."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """One thread, no logs, and warnings as eager PyTorch gives them: they are not what is tested."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), oracle.quick_exports():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)
    torch.set_num_threads(threads)


def run_many(request: pytest.FixtureRequest, source: str) -> None:
    """Judge one program, and count it."""
    counts: Counter[tuple[str, str]] = request.node.stash.setdefault(COUNTS, Counter())
    outcome = oracle.judge(source, onnx=sum(counts.values()) % ONNX_EACH == 0)
    counts[outcome.kind, outcome.what] += 1
    request.node.user_properties[:] = [("fuzzed", [(*key, count) for key, count in counts.items()])]
    if outcome.kind == oracle.FAILED:
        small = shrink(source, outcome, seconds=120)
        note(small)
        pytest.fail(f"{outcome.what}\n\n{small}\n\n{outcome.text}", pytrace=False)


COUNTS = pytest.StashKey[Counter[tuple[str, str]]]()
sources = st.integers(0, 2**32).map(lambda number: program(seeded(number)))
of_aliases = st.integers(0, 2**32).map(lambda number: aliases.program(seeded(number)))


@profiles.few()
@given(source=sources)
def test_a_few_random_programs(request: pytest.FixtureRequest, source: str) -> None:
    run_many(request, source)


@pytest.mark.slow
@profiles.chosen()
@given(source=sources)
def test_random_programs(request: pytest.FixtureRequest, source: str) -> None:
    run_many(request, source)


@pytest.mark.slow
@seed(2)
@profiles.chosen()
@given(source=of_aliases)
def test_random_references(request: pytest.FixtureRequest, source: str) -> None:
    run_many(request, source)
