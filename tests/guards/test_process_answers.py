"""What the process says of itself is asked again, as long as it can be."""

from __future__ import annotations

import logging

import torch

from dy2st.calls.asked_again import Answer, is_asking
from dy2st.guards.process_answers import all_the_same, kept


def test_who_is_asked():
    logger = logging.getLogger("dy2st.tests.answers")
    assert is_asking(torch.get_num_threads)
    assert is_asking(torch.initial_seed)
    assert is_asking(torch.cuda.is_available)
    assert is_asking(logger.isEnabledFor)
    assert not is_asking(logger.debug)
    assert not is_asking(torch.relu)
    assert not is_asking(torch.ones(1).get_device)
    assert not is_asking(lambda: 3)


def test_answers_are_kept_once_and_compared():
    said = [2]

    def ask() -> int:
        return said[0]

    found = kept([Answer(ask, (), {}, 2), Answer(ask, (), {}, 2), Answer(ask, (torch.ones(1),), {}, 2)])
    assert len(found) == 1
    assert all_the_same(found)
    said[0] = 3
    assert not all_the_same(found)
    assert kept([Answer(ask, (), {}, 2)]) == []  # what a capture changes is told otherwise after it


def test_who_raises_later_has_no_answer():
    said = [2]
    found = kept([Answer(said.__getitem__, (0,), {}, 2)])
    assert all_the_same(found)
    said.clear()
    assert not all_the_same(found)


def test_objects_are_the_same_by_identity():
    thing = [1]
    found = kept([Answer(lambda: thing, (), {}, thing)])
    assert all_the_same(found)
    thing = [1]
    assert not all_the_same(found)
