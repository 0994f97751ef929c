"""What is noted of where a node comes from is what torch would note."""

from __future__ import annotations

import sys

import torch
from torch import fx
from torch.utils._traceback import CapturedTraceback

import dy2st
from dy2st.tracing import forward_frames as noted


def torchs():
    """The traceback that torch keeps, of all that runs."""
    tracer = fx.Tracer()
    tracer._record_forward_stack_traces_only = True
    return "".join(tracer._filter_traceback_frames(CapturedTraceback.extract(skip=1).summary()).format()).strip()


class Inner(torch.nn.Module):
    def forward(self, x):
        return [noted.forward_frames(sys._getframe()), torchs()][x]


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.between(x)

    def between(self, x):
        return self.inner(x)


def test_frames_of_forward_are_noted_as_torch_does():
    found, wanted = [Outer()(which) for which in (0, 1)]
    assert found == wanted
    assert found.count(", in forward") == 2


def test_without_one_nothing_is_noted():
    assert noted.forward_frames(sys._getframe()) == torchs() == ""


def test_nodes_of_a_program_have_what_torch_would_give_them(monkeypatch):
    seen = []

    def compared(frame):
        # Two more frames are running, and none of them is called forward.
        seen.append((found := kept(frame), torchs()))
        return found

    kept = noted.forward_frames
    monkeypatch.setattr(noted, "forward_frames", compared)

    def model(x):
        while x.sum() > 1:
            x = x / 2 if x.max() > 3 else x - 1
        return x

    dy2st.export(model, (torch.ones(3),))
    assert len(seen) > 5
    assert all(found == wanted for found, wanted in seen)


def test_a_tracer_that_notes_nothing_is_left_alone():
    tracer = fx.Tracer()
    assert noted.noting_forward_frames(tracer) == tracer.create_node
