"""What code says of itself: how a loop is to be staged, what is read once. Outside a capture each gives back its value.

Importing this module imports no torch.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def rolled(steps: T) -> T:
    """Let a loop that Python could unroll be one loop of the graph: ``for i in dy2st.rolled(range(200))``.

    Args:
        steps: what a ``for`` iterates: a range, a tensor, or a list or tuple of tensors of one shape and dtype, of
            numbers, or of tuples of these; ``enumerate``, ``zip`` and ``reversed`` of such. Or the test of a
            ``while``: ``while dy2st.rolled(i < 200)``.

    Returns:
        ``steps`` itself.

    Raises:
        LoopHintError: (under a capture) the elements can't be stacked: modules, strings, tensors of several shapes.
    """
    return steps


def unrolled(steps: T) -> T:
    """Let a ``for`` be carried out by Python, a copy of its body for each step, even if a tensor decides its ``break``.

    Without it such a loop over a range or tensor becomes a loop of the graph, once a tensor decides about a jump.

    Args:
        steps: what the ``for`` iterates; its length must be known to Python.

    Returns:
        ``steps`` itself.

    Raises:
        LoopHintError: (under a capture) the length is data-dependent.
    """
    return steps


def at_most(limit: int, condition: T) -> T:
    """The test of a ``while`` whose body runs at most ``limit`` times: ``while dy2st.at_most(50, error > 1e-6)``.

    The graph's loop has the bound as its trip count, as some run times demand. It is a promise, not a stop: a graph
    whose loop would go on after ``limit`` steps fails when it runs, where eager goes on.

    Args:
        limit: a Python int, 1 or more.
        condition: the test.

    Returns:
        ``condition`` itself.

    Raises:
        LoopHintError: (under a capture) the limit is no int from 1 up, or it stands elsewhere than as a while's test.
    """
    del limit
    return condition


def constant(value: T) -> T:
    """A value that is read once, when a program of ``dy2st.to_static`` is captured: ``dy2st.constant(time.time())``.

    What stands in the parentheses is not compared before the next call, and may ask for what can't be: a clock, a file,
    the environment.

    Args:
        value: anything.

    Returns:
        ``value`` itself.
    """
    return value
