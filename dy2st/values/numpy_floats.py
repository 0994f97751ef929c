"""Whether some of the staged floats would be numpy's.

``numpy.sqrt`` of a float gives a ``numpy.float64`` in eager: a float in all that it computes, but of a class of its
own, with attributes of its own. A staged float does not know which of the two it is. So as soon as a capture has made
one of numpy's, a question that the two answer differently is refused, for every float.

Source: numpy reference, array scalars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.operators.export_session import current


class NumpyFloats:
    """Whether an export has made any."""

    def __init__(self) -> None:
        self.any = False


def classes(kind: type) -> tuple[type, ...]:
    """The classes that a staged number of type ``kind`` may be of in eager."""
    return (float, np.float64) if kind is float and current().part(NumpyFloats).any else (kind,)


def answers(kind: type, ask: Any) -> list[Any]:
    """The different answers that ``ask`` gives for these classes."""
    found: list[Any] = []
    for each in classes(kind):
        answer = ask(each)
        found += [] if answer in found else [answer]
    return found
