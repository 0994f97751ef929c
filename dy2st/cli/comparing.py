"""The options that say how outputs are compared, and on what else the file runs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

Bound = float | Mapping[str, float] | None


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """``--rtol`` and ``--atol``."""
    for name, what in (("--rtol", "relative"), ("--atol", "absolute")):
        parser.add_argument(
            name,
            action="append",
            type=_bound,
            metavar="[OUTPUT=]X",
            help=f"{what} tolerance for floats, or for one output ('output[1]=1e-3', or the file's name); repeatable",
        )


def add_variants(parser: argparse.ArgumentParser) -> None:
    """``--optimization-levels``, ``--opsets``, ``--providers`` and ``--runtimes``."""
    parser.add_argument(
        "--optimization-levels", action="store_true", help="also compare each of onnxruntime's levels of optimisation"
    )
    parser.add_argument(
        "--opsets", type=_opsets, default=(), metavar="N,N", help="also write and compare files of these opsets"
    )
    parser.add_argument(
        "--providers",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAME,NAME",
        help="also compare on these execution providers of onnxruntime, for instance CUDA",
    )
    parser.add_argument(
        "--runtimes",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAME,NAME",
        help="also compare on these other runtimes: reference (onnx's own), openvino",
    )


def bounds(given: Sequence[tuple[str, float]] | None, setting: Bound) -> Bound:
    """One bound for all outputs, or one for each by name.

    ``given`` are the command line's, where an empty name stands for all outputs: it takes the place of the ``setting``;
    one for an output is added to it.
    """
    if not given:
        return setting
    before = setting if isinstance(setting, Mapping) else {} if setting is None else {"": setting}
    found = {**({} if "" in dict(given) else before), **dict(given)}
    return found[""] if set(found) == {""} else found


def _bound(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid float value: {number!r}") from None


def _opsets(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid opsets: {text!r}") from None
