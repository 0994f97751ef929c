"""The examples of the help pages, and how to run one.

An example is a file, ``example.py``, that is imported in an empty folder. If it defines ``model``, the model is checked
on its ``inputs`` (by default three ones and three minus ones) and ``dynamic_shapes``. If it defines ``command``, that
is run. Otherwise it calls dy2st itself.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
import textwrap
from pathlib import Path

import torch

import dy2st
from dy2st import errors
from dy2st.cli.main import main

# Bases that nothing raises: what their example raises is of a kind below them.
BASES = (errors.Dy2stError, errors.StagingError)
KINDS = list(errors.kinds().values())


def examples(kind):
    """The example *Before* and the one *After*, as texts by their titles."""
    page = inspect.cleandoc(kind.__doc__) + "\n"
    found = re.findall(r"^(Before|After):\n((?:    .*\n|\n)+)", page, flags=re.MULTILINE)
    return {title: textwrap.dedent(text) for title, text in found}


def run(text):
    """Run an example; a command that fails leaves its exit code and text to the caller."""
    Path("example.py").write_text(text)
    module = importlib.import_module("example")
    if hasattr(module, "command"):
        return main(shlex.split(module.command)[1:])
    if hasattr(module, "model"):
        inputs = getattr(module, "inputs", [(torch.ones(3),), (-torch.ones(3),)])
        return dy2st.check(module.model, inputs, dynamic_shapes=getattr(module, "dynamic_shapes", None))
    return None
