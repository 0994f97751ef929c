"""The user's code as one module: what is needed and no more, under names that don't collide."""

from __future__ import annotations

import pytest

from dy2st.errors import UsageError
from dy2st.reproducer.inlining import inlined


def made(module, name="f"):
    """The one module's source, and the thing that it makes under the name."""
    source, known_as = inlined(module, name)
    space = {"__name__": "alone"}
    exec(compile(source, "alone.py", "exec"), space)
    return source, space[known_as]


def test_what_is_needed_and_no_more(modules):
    module = modules(
        net="import math\nimport json\nLIMIT = 3\nOTHER = 4\nTABLE = {}\nTABLE['a'] = LIMIT\nTABLE['b'] = 2\n"
        "def unused():\n    return OTHER\n\n@staticmethod\ndef f(x, LIMIT=LIMIT):\n    OTHER = 1\n"
        "    return math.floor(x) + TABLE['a'] * LIMIT + OTHER\n"
        "if __name__ == '__main__':\n    f(1)\n"
    )
    source, f = made(module)
    assert f(1.5) == 11
    assert "OTHER = 4" not in source
    assert "json" not in source
    assert "__main__" not in source
    assert "@staticmethod\ndef f" in source


def test_names_of_other_modules(modules):
    module = modules(
        base="SCALE = 2\ndef scaled(x):\n    return x * SCALE\n",
        helpers="from base import scaled as grow\nSCALE = 5\nclass Box:\n    size = SCALE\n    def f(self):\n"
        "        return grow(self.size)\n",
        net="import helpers\nimport base as b\nfrom helpers import Box as B\nfrom helpers import *\nSCALE = 7\n"
        "def f(x):\n    return helpers.Box().f(), b.scaled(x), B().size, Box.size, b.SCALE, helpers.SCALE, SCALE\n",
    )
    source, f = made(module)
    assert f(1) == (10, 2, 5, 5, 2, 5, 7)
    assert "import" not in source


def test_packages_and_relative_imports(modules):
    module = modules(
        pack__inner="from __future__ import annotations\nimport math as m\ndef g(x: Missing):\n    return m.floor(x)\n",
        pack__net="from . import inner\nfrom .inner import g\nimport pack.inner\n"
        "def f(x):\n    return inner.g(x) + g(x) + pack.inner.g(x)\n",
    )
    source, f = made(module)
    assert f(2.5) == 6
    assert source.startswith("from __future__ import annotations\n")
    assert "import math as m\n" in source


def test_locals_and_globals(modules):
    module = modules(
        helpers="count = 10\ndef step(count):\n    return count + 1\n",
        net="from helpers import step\nfrom helpers import count as start\ncount = 0\n"
        "def f(x):\n    global count\n    count = step(count) + sum(count for count in range(x))\n"
        "    step_2 = lambda step: step + start\n    return step_2(count)\n",
    )
    assert made(module)[1](3) == 14


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import helpers\ndef f(x):\n    return helpers\n", "the module helpers is used as a value"),
        ("def f(x):\n    import helpers\n    return helpers.g(x)\n", "net.py:3: an import inside of a function"),
    ],
)
def test_what_can_not_be_put_into_one_file(modules, text, problem):
    module = modules(helpers="def g(x):\n    return x\n", net=f"import helpers as h\n{text}")
    with pytest.raises(UsageError, match=problem):
        inlined(module, "f")
