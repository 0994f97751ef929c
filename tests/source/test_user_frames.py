"""Whose a frame is: one rule, for all kinds of code that call each other."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dy2st.source import user_frames
from dy2st.source.user_frames import (
    frames_of_user,
    is_own,
    is_users,
    location_of,
    look_up,
    name_of,
    running_location,
    snapshot,
    user_frame,
    user_location,
    users_frame,
)

STDLIB = sysconfig.get_paths()["stdlib"]
# A file of each kind of code; whether its code is the user's or a package's, and whether it is the user's own.
KINDS = {
    "own": (str(Path(__file__).parent / "net.py"), True, True),
    "named alike": ("/home/me/site-packages-of-mine/torch/net.py", True, True),
    "installed": (str(Path(sysconfig.get_paths()["purelib"]) / "library" / "layers.py"), True, False),
    "inside Python": (str(Path(STDLIB) / "site-packages" / "library.py"), True, False),
    "Debian's": ("/usr/lib/python3/dist-packages/library.py", True, False),
    "Python": (str(Path(STDLIB) / "statistics.py"), False, False),
    "torch": (f"{user_frames.TORCH[0]}nn/functional.py" if user_frames.TORCH else "<torch>", False, False),
    "ours": (f"{user_frames.OURS[0]}staging/session.py", False, False),
    "executed": ("<string>", False, False),
    "frozen": ("<frozen importlib._bootstrap>", False, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whose_a_file_is(kind):
    filename, users, own = KINDS[kind]
    assert (is_users(filename), is_own(filename)) == (users, own)


def caller_in(filename):
    """A function of a file that calls what it is given."""
    found = {}
    exec(compile("def call(then):\n    return then()\n", filename, "exec"), found)
    return found["call"]


CALLERS = {kind: caller_in(filename) for kind, (filename, _, _) in KINDS.items()}


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=8))
def test_the_walk_gives_the_users_frames_alone_and_in_order(chain):
    """Whatever calls whatever: outermost first, as called."""
    here = sys._getframe()

    def innermost():
        found = []
        for frame in frames_of_user(sys._getframe(1)):
            if frame is here:
                break
            if frame.f_code.co_name == "call":
                found.append(frame.f_code.co_filename)
        return found, users_frame().f_code.co_filename, running_location()

    call = innermost
    for kind in reversed(chain):
        call = functools.partial(CALLERS[kind], call)
    found, nearest, location = call()
    assert found == [KINDS[kind][0] for kind in reversed(chain) if KINDS[kind][1]]
    assert nearest == location.filename == __file__


def names(start=None):
    """The names of the functions of this file that run, innermost first."""
    found = frames_of_user(start or sys._getframe(1))
    return [frame.f_code.co_name for frame in found if frame.f_code.co_filename == __file__]


def test_a_function_that_reduce_calls():
    def step(total, _):
        return [*total, names()[:2], location_of(users_frame()).text.strip()]

    innermost, text = functools.reduce(step, range(1), [])
    assert innermost == ["step", "test_a_function_that_reduce_calls"]
    assert text.startswith("return [*total")


def test_a_key_of_sorted_and_a_lambda_in_a_comprehension():
    seen = []
    sorted([2, 1], key=lambda value: seen.append(names()) or value)
    assert seen[0][:2] == ["<lambda>", "test_a_key_of_sorted_and_a_lambda_in_a_comprehension"]
    (found,) = [functools.partial(lambda _: names(), None)() for _ in range(1)]
    around = ["<listcomp>"] if sys.version_info < (3, 12) else []
    assert found[:3] == ["<lambda>", *around, "test_a_key_of_sorted_and_a_lambda_in_a_comprehension"][:3]


def test_a_function_that_torch_calls():
    pytree = pytest.importorskip("torch.utils._pytree", reason="these tests also run where torch is not installed")
    found = pytree.tree_map(lambda _: names(), [0])
    assert found[0][:2] == ["<lambda>", "test_a_function_that_torch_calls"]


def test_a_library_of_python_that_calls_back():
    import statistics

    class Value(float):
        def as_integer_ratio(self):
            seen.append((users_frame().f_code.co_name, names()[:2]))
            return super().as_integer_ratio()

    seen = []
    statistics.mean([Value(1.0)])
    assert seen[0] == ("as_integer_ratio", ["as_integer_ratio", "test_a_library_of_python_that_calls_back"])


def test_code_that_is_executed_has_no_line_to_show():
    found = {}
    exec("def made(ask):\n    return ask()", found)
    assert found["made"](lambda: users_frame().f_code.co_name) == "<lambda>"
    assert found["made"](users_frame).f_code.co_name == "test_code_that_is_executed_has_no_line_to_show"


def test_where_nothing_else_runs_it_is_the_prompts_frame():
    code = "from dy2st.source.user_frames import users_frame as u\ndef f():\n    return u()\nprint(f().f_code.co_name)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "f\n"


def test_it_imports_neither_torch_nor_libcst():
    code = "import sys, dy2st.source.user_frames; print({'torch', 'libcst'} & set(sys.modules))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "set()\n"


def test_where_torch_lies_is_found_without_it():
    torch = pytest.importorskip("torch", reason="these tests also run where torch is not installed")
    assert user_frames.TORCH[0] == f"{Path(torch.__file__).parent}{os.sep}"
    assert not is_users(torch.__file__)


def test_the_innermost_line_of_a_traceback():
    with pytest.raises(ValueError, match="nonsense") as caught:
        functools.reduce(lambda _, text: int(text), ["nonsense"], 0)
    trace = caught.value.__traceback__
    assert user_frame(trace).f_code.co_name == "<lambda>"
    assert user_location(trace).text.strip().startswith("functools.reduce(")
    assert user_location(None) is None


GLOBAL = 1


def test_variables_of_a_frame():
    own = object()
    unset = object()
    frame = sys._getframe()
    variables = snapshot(frame)
    assert variables["own"] is own
    assert look_up(variables, "own", frame, unset) is own
    assert look_up(variables, "GLOBAL", frame, unset) == 1
    assert look_up(variables, "GLOBAL", None, unset) is unset
    assert look_up(variables, "later", frame, unset) is unset  # a local variable that is not there yet is no global
    assert name_of(own) == "own"
    later = 2
    assert "later" not in variables
    assert snapshot(frame)["later"] == later


class Held:
    def __init__(self):
        self.inside = object()


def test_an_attribute_has_a_name_too():
    held = Held()
    found = name_of(held.inside)
    assert found == "held.inside"
    found = user_frames.named(held.inside, "a list")
    assert found == "'held.inside'"
    found = user_frames.named(object(), "a list")
    assert found == "a list"
