"""Names of branches and loops, definite assignment, jumps: one line of expectation for each small function."""

from __future__ import annotations

import ast

import pytest
from lowering import facts_of

BRANCHES = {
    # (text, names of the first branch)
    "dead names are left out": ("def f(x):\n  if x:\n    y = 1\n    z = 2\n  return y", ("y",)),
    "read in the else suite": ("def f(x, y):\n  if x:\n    y = 1\n  else:\n    return y", ("y",)),
    "nothing is live after a return": ("def f(x, y):\n  if x:\n    y = 1\n    return y\n  return x", ()),
    "augmented": ("def f(x, n):\n  if x:\n    n += 1\n  return n", ("n",)),
    "live around the loop": (
        "def f(xs, n):\n  for x in xs:\n    if n:\n      n = x\n  return 0",
        ("n",),
    ),
    "rebound at the head of each iteration": (
        "def f(xs, n):\n  for x in xs:\n    n = x\n    if n:\n      n = 5\n  return 0",
        (),
    ),
    "live at break is the loop's business": (
        "def f(xs):\n  y = 0\n  for x in xs:\n    if x:\n      y = x\n      break\n    y = 1\n  return y",
        (),
    ),
    "captured": ("def f(x):\n  y = 0\n  g = lambda: y\n  if x:\n    y = 1\n  return g", ("y",)),
    "a lambda's own parameter is not captured": (
        "def f(x):\n  g = lambda y: y\n  if x:\n    y = 1\n  return g",
        (),
    ),
    "a comprehension reads": ("def f(x, y):\n  if x:\n    y = 1\n  return [y for i in x]", ("y",)),
    "a comprehension's own variable": ("def f(x, y):\n  if x:\n    y = 1\n  return [y for y in x]", ()),
    "locals()": ("def f(x):\n  if x:\n    y = 1\n  return locals()", ("y",)),
    "global, which is announced": ("def f(x):\n  global y\n  if x:\n    y = 1", ()),
    "nonlocal by a call, which is announced": (
        "def f(x):\n  n = 0\n  def g():\n    nonlocal n\n    n = 1\n  if x:\n    g()\n  return n",
        (),
    ),
    "walrus": ("def f(x):\n  if x:\n    g(y := 1)\n  return y", ("y",)),
    "import, def, class": (
        "def f(x):\n  if x:\n    import a\n    def b(): pass\n    class c: pass\n  return a, b, c",
        ("a", "b", "c"),
    ),
    "del": ("def f(x, y):\n  if x:\n    del y\n  return y", ("y",)),
    "read by the handler": (
        "def f(x, y):\n  try:\n    if x:\n      y = 1\n    y = g()\n  except E:\n    return y\n  return 0",
        ("y",),
    ),
    "read by finally": (
        "def f(x, y):\n  try:\n    if x:\n      y = 1\n      return 0\n    y = 2\n  finally:\n    g(y)",
        ("y",),
    ),
    "swallowed by a with": (
        "def f(x, y):\n  with x:\n    if x:\n      y = 1\n    y = g()\n  return y",
        ("y",),
    ),
    "rebound before it is read": ("def f(x, y):\n  if x:\n    y = 1\n  y = 2\n  return y", ()),
    "match binds": ("def f(x):\n  if x:\n    match x:\n      case [y, *z]: pass\n  return y, z", ("y", "z")),
    "an exception's name": ("def f(x, e):\n  if x:\n    try: g()\n    except E as e: pass\n  return e", ("e",)),
}


@pytest.mark.parametrize(("text", "names"), BRANCHES.values(), ids=BRANCHES)
def test_names_of_branches(text: str, names: tuple[str, ...]) -> None:
    facts = facts_of(text)
    first = next(node for node in ast.walk(facts.root) if isinstance(node, ast.If))
    assert facts.branches[first].names == names


LOOPS = {
    # (text, names, targets) of the first loop
    "carried": ("def f(n):\n  i = 0\n  while i < n:\n    i += 1\n  return 0", ("i",), ()),
    "not carried": ("def f(xs):\n  for x in xs:\n    y = x\n    g(y)\n  return 0", (), ()),
    "live after": ("def f(xs):\n  for x in xs:\n    y = x\n  return x, y", ("y",), ("x",)),
    "rebound target": ("def f(xs):\n  for x in xs:\n    x = x + 1\n  return x", (), ("x",)),
    "read by else": ("def f(xs):\n  for x in xs:\n    y = x\n  else:\n    g(x, y)\n  return 0", ("y",), ("x",)),
    "read after break": (
        "def f(xs, y):\n  for x in xs:\n    y = x\n    if x: break\n    y = 0\n  return y",
        ("y",),
        (),
    ),
    "walrus in the test": ("def f(x):\n  while (y := x()):\n    pass\n  return y", ("y",), ()),
    "outer loop's next round": (
        "def f(xs, h):\n  while xs:\n    for x in xs:\n      h = x\n      xs = h\n  return 0",
        ("xs",),
        (),
    ),
    "target into an object": ("def f(self, xs):\n  for self.x, i in xs:\n    pass\n  return i", ("i",), ()),
}


@pytest.mark.parametrize(("text", "names", "targets"), LOOPS.values(), ids=LOOPS)
def test_names_of_loops(text: str, names: tuple[str, ...], targets: tuple[str, ...]) -> None:
    facts = facts_of(text)
    first = next(node for node in ast.walk(facts.root) if isinstance(node, ast.For | ast.While))
    assert facts.loops[first].names == names
    assert facts.loops[first].targets == targets


MATCHES = {
    # (text, names of each case's branch, whether its comparisons have to be Python's)
    "captures beside values are the suite's": (
        "def f(x, a):\n  match x:\n    case (0, a): pass\n    case (1, b): pass\n  return a",
        [("a",), ()],
        [False, False],
    ),
    "captures of structure are bound before": (
        "def f(x, a):\n  match x:\n    case [a, *_] if a: y = 1\n    case _: y = 2\n  return a, y",
        [("y",), ("y",)],
        [False, False],
    ),
    "a capture for a guard, read when it fails": (
        "def f(x, a):\n  match x:\n    case (0, a) if a: return 1\n  return a",
        [("a",)],
        [True],
    ),
    "a capture for a guard, rebound by the next case": (
        "def f(x):\n  match x:\n    case (0, a) if a: return 1\n    case [a]: return a",
        [(), ()],
        [False, False],
    ),
    "structure alone": ("def f(x):\n  match x:\n    case [a]: pass\n    case {'b': b}: pass", [], [False, False]),
}


@pytest.mark.parametrize(("text", "names", "native"), MATCHES.values(), ids=MATCHES)
def test_names_of_cases(text: str, names: list[tuple[str, ...]], native: list[bool]) -> None:
    facts = facts_of(text)
    cases = [node for node in ast.walk(facts.root) if isinstance(node, ast.match_case)]
    assert [facts.branches[case].names for case in cases if case in facts.branches] == names
    assert [case in facts.native_patterns for case in cases] == native


UNSURE = {
    "one suite": ("def f(x):\n  if x: y = 1\n  return y", ["y"]),
    "both suites": ("def f(x):\n  if x: y = 1\n  else: y = 2\n  return y", []),
    "the other suite leaves": ("def f(x):\n  if x: y = 1\n  else: raise E\n  return y", []),
    "loop": ("def f(xs):\n  for x in xs: y = 1\n  return x, y", ["x", "y"]),
    "endless loop": ("def f(x):\n  while True:\n    y = 1\n    if x: break\n  return y", []),
    "break before": ("def f(x):\n  while True:\n    if x: break\n    y = 1\n  return y", ["y"]),
    "never": ("def f(x):\n  return y\n  y = 1", []),
    "parameter": ("def f(y):\n  if y: y = 1\n  return y", []),
    "deleted": ("def f(x, y):\n  if x: del y\n  return y", ["y"]),
    "later round": ("def f(xs):\n  for x in xs:\n    if x: g(y)\n    y = 1", ["y"]),
    "with": ("def f(x):\n  with x: y = 1\n  return y", []),
    "try": ("def f(x):\n  try: y = x()\n  except E: pass\n  return y", ["y"]),
    "try, both": ("def f(x):\n  try: y = x()\n  except E: y = 0\n  return y", []),
    "match": ("def f(x):\n  match x:\n    case 1: y = 1\n    case 2: y = 2\n  return y", ["y"]),
    "match, all": ("def f(x):\n  match x:\n    case 1: y = 1\n    case _: y = 2\n  return y", []),
    "comprehension": ("def f(x):\n  if x: y = 1\n  return [y for i in y if (lambda y: y)]", ["y", "y"]),
}


@pytest.mark.parametrize(("text", "names"), UNSURE.values(), ids=UNSURE)
def test_unsure_loads(text: str, names: list[str]) -> None:
    assert sorted(node.id for node in facts_of(text).unsure if isinstance(node, ast.Name)) == names


JUMPS = {
    "return": ("def f(x):\n  if x: return 1\n  return 2", True, (True, False)),
    "inner loop's break": ("def f(x):\n  if x:\n    while x: break", False, (False, False)),
    "inner loop's else": (
        "def f(xs):\n  for x in xs:\n    if x:\n      while x: pass\n      else: break",
        False,
        (True, False),
    ),
    "nested function's return": ("def f(x):\n  if x:\n    def g(): return 1\n  return x", False, (False, False)),
    "else": ("def f(xs):\n  while xs:\n    if xs: pass\n    else: continue", False, (False, True)),
    "try": ("def f(x):\n  if x:\n    try: return 1\n    finally: pass", True, (True, False)),
}


@pytest.mark.parametrize(("text", "framed", "jumps"), JUMPS.values(), ids=JUMPS)
def test_jumps(text: str, framed: bool, jumps: tuple[bool, bool]) -> None:
    facts = facts_of(text)
    first = next(node for node in ast.walk(facts.root) if isinstance(node, ast.If))
    branch = facts.branches[first]
    assert (facts.root in facts.framed) is framed
    assert (branch.then_jumps, branch.orelse_jumps) == jumps


@pytest.mark.parametrize(
    "text",
    [
        "async def f(x):\n  yield x",
        "async def f(x):\n  if x: pass",
        "def f(x):\n  if x: exec('y = 1')",
        "def f(x):\n  return eval('x') if x else 1",
    ],
)
def test_left_alone(text: str) -> None:
    try:
        facts = facts_of(text)
    except SyntaxError:
        pytest.skip("no Python any more")
    assert facts.root not in facts.functions
