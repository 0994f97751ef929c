"""Where a target's code begins."""

from __future__ import annotations

import pytest

from dy2st.cli.definitions import definition_in_file, definition_of
from dy2st.cli.target import load_target

SOURCE = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


model = Net()


def f(x):
    return x


class Callable:
    def __call__(self, x):
        return x


called = Callable()
builtin = torch.relu
"""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("model", 10, 6), ("Net", 5, 6), ("f", 13, 13), ("called", 22, 18), ("builtin", 23, 23), ("missing", 1, None)],
)
def test_definitions(write, name, before, after):
    """Before the import the line that defines the name; after it, that of the code that a call runs."""
    write("net.py", SOURCE)
    place = definition_in_file(f"net.py:{name}")
    assert (place.filename, place.line) == ("net.py", before)
    if after is not None:
        assert definition_of(load_target(f"net.py:{name}")).line == after


def test_targets_that_have_no_file(write):
    write("broken.py", "def (:\n")
    assert definition_in_file("broken.py:model").line == 1
    assert definition_in_file("missing.py:model") is None
    assert definition_in_file("no_such_module:model") is None
    assert definition_in_file(":") is None
    assert definition_in_file("json.decoder:JSONDecoder").line > 1
