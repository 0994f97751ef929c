"""Random functions that write to tensors: arguments, a buffer, fresh ones, views of them; in loops and in branches.

``v`` is an argument that is a view of the argument ``a``, and ``m.buf`` a buffer. Statements are drawn one after the
other, so that what shrinks is a short function.
"""

from __future__ import annotations

from hypothesis import strategies as st

SIZE = 4
HEADER = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.arange(4.0, dtype=torch.float64) / 4)

    def forward(self, a, b, v, k):
        buf = self.buf
        c = torch.zeros(4, dtype=torch.float64)
        d = a * 2
        s = b.sum()
        i = 0
"""
NAMES = ("a", "b", "c", "d", "buf", "v")
WHOLE = ("a", "b", "c", "d", "buf")

scalars = st.sampled_from(["s", "b[1]", "c[i % 4]", "a.sum()", "0.5", "d[0] * 0.1", "buf[2]"])
vectors = st.one_of(
    st.sampled_from(WHOLE),
    st.builds("{}.clone()".format, st.sampled_from(WHOLE)),
    st.builds("{} * 0.5 + {}".format, st.sampled_from(WHOLE), scalars),
    st.builds("torch.tanh({})".format, st.sampled_from(WHOLE)),
    st.builds("torch.roll({}, 1)".format, st.sampled_from(WHOLE)),
    st.just("torch.zeros(4, dtype=torch.float64)"),
)
names = st.sampled_from(WHOLE)
written = st.sampled_from(NAMES)
writes = st.one_of(
    st.builds("{}[i % {}] = {}".format, names, st.just(SIZE), scalars),
    st.builds("{}[0] = {}".format, written, scalars),
    st.builds("{}[1:3] = {}[0:2]".format, names, names),
    st.builds("{}[1:3].mul_({})".format, names, scalars),
    st.builds("{}.mul_(0.5)".format, written),
    st.builds("{}.add_({})".format, names, vectors),
    st.builds("{}.copy_({})".format, names, vectors),
    st.builds("{0}.masked_fill_({0} > 1, 0.5)".format, names),
    st.builds("{}.index_copy_(0, k, {}[:2] * 0.5)".format, names, names),
    st.builds("{}[i % 4] = torch.tanh({}[(i - 1) % 4])".format, names, names),
    st.builds("{}.zero_()".format, written),
    st.builds("with torch.no_grad(): {}[i % 4] = {}".format, names, scalars),
)
assignments = st.one_of(
    st.builds("{} = {}".format, names, vectors),
    st.just("c, d = d, c"),
    st.builds("s = s * 0.5 + {}".format, scalars),
    st.builds("s = {}.detach().sum()".format, names),
)
simple = st.one_of(writes, writes, assignments)


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _flat(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def _blocks(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    """A branch, or a loop that ends: its counter is its own, beside ``i``."""
    body = st.lists(inner, min_size=1, max_size=4).map(_flat)
    tests = st.sampled_from(["s > 1", "c[0] > 0.2", "a.sum() > b.sum()", "k[0] > 0", "i < 2"])

    def loop(test: str, lines: list[str], trips: int) -> list[str]:
        return ["n = 0", f"while n < {trips} and {test}:", *_indented([*lines, "i += 1", "n += 1"])]

    def staged(lines: list[str]) -> list[str]:
        return ["for _ in range(k[1]):", *_indented([*lines, "i += 1"])]

    def raising(test: str) -> list[str]:
        return [f"if {test}:", "    raise ValueError(str(i))"]

    branch = st.builds(lambda test, one: [f"if {test}:", *_indented(one)], tests, body)
    both = st.builds(
        lambda test, one, two: [f"if {test}:", *_indented(one), "else:", *_indented(two)], tests, body, body
    )
    loops = st.builds(loop, tests, body, st.integers(2, 3))
    return st.one_of(inner, branch, both, loops, body.map(staged), st.sampled_from(["s > 9", "c[3] < -2"]).map(raising))


statements = st.recursive(simple.map(lambda line: [line]), _blocks, max_leaves=6)
results = st.sampled_from(["a, c, d, s", "c, d, i", "d, c, buf, s", "c", "s, v", "buf, d", "c[1:3], d[:1], a"])


@st.composite
def models(draw: st.DrawFn, *, raising: bool = True) -> str:
    """The text of a module with a class ``Model``, which may raise."""
    lines = _flat(draw(st.lists(statements, min_size=1, max_size=4)))
    lines = [line if raising else line.replace("raise ValueError(str(i))", "s = s * 0.5") for line in lines]
    lines = [*lines, f"return {draw(results)}"]
    return HEADER + "".join(f"        {line}\n" for line in lines)
