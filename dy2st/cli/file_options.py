"""The options that say what the inputs and outputs of a file are."""

from __future__ import annotations

import argparse


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """``--optional-outputs``, ``--inputs-as`` and ``--random-inputs``."""
    parser.add_argument(
        "--optional-outputs",
        choices=("optional", "flag"),
        help="how a result that is None on some paths is written: as ONNX's optional (the default), or as a tensor "
        "with a bool beside it (flag: NAME and NAME_present)",
    )
    parser.add_argument(
        "--inputs-as",
        action="append",
        default=[],
        type=_input_as,
        metavar="NAME=tensor",
        help="an argument whose Python numbers are inputs of the file, and no constants; repeatable",
    )

    parser.add_argument(
        "--random-inputs",
        action="store_true",
        help="what the model draws at random are inputs of the file (random_0, random_1), on which both are compared",
    )


def _input_as(text: str) -> tuple[str, str]:
    name, equals, kind = text.partition("=")
    if not (name and equals and kind):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=tensor")
    return name, kind


def inputs_as(options: argparse.Namespace) -> dict[str, str]:
    """The arguments whose numbers are inputs, as the command line or the settings have them."""
    return dict(options.inputs_as)
