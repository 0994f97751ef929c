"""Warnings: what works, but not as well as it could."""

from __future__ import annotations


class Dy2stWarning(UserWarning):
    """Base of the warnings that dy2st gives on purpose."""


class UnrolledLoopWarning(Dy2stWarning):
    """A loop over a Python range or sequence made many copies of its body; ``dy2st.rolled`` makes it one loop."""


class RetracingWarning(Dy2stWarning):
    """A function of ``dy2st.to_static`` is captured anew for call after call; the warning names what keeps changing."""


class DtypeWarning(Dy2stWarning):
    """A model's result is of one dtype, or a Python number, on one path and of a higher dtype on the other.

    The program's is of the higher one: the values are equal, and eager's dtype is another one.
    """


class StateWarning(Dy2stWarning):
    """A model changes what it reads in its next call, and the file is one that starts afresh in each call.

    ``state="io"`` makes such state inputs and outputs of the file.
    """


class OptionWarning(Dy2stWarning):
    """An option of ``torch.onnx.export`` has no effect in dy2st; the file computes the same without it."""
