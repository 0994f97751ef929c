"""What can be captured in two ways, of which the first is better where it can be."""

from __future__ import annotations


class OtherWay:
    """``met``: the first way has been taken. ``taken``: the other one is to be taken, for a program that is refused."""

    def __init__(self) -> None:
        self.met = False
        self.taken = False
