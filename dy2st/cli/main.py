"""The parser and the dispatch. Nothing heavy is imported before a command needs it.

What failures print and which exit code they give: :mod:`dy2st.cli.failures`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from dy2st import __version__
from dy2st.cli.failures import INTERRUPTED, OK, USAGE, report_error
from dy2st.cli.formats import Request, request
from dy2st.cli.names import require_names
from dy2st.cli.options import OF_CHECKS, OF_FILES, OF_SEARCHES, add_options, with_default_seconds
from dy2st.cli.output import NO_ROOM
from dy2st.errors import SaveError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EXIT_CODES = """\
exit codes:
  0  equal on every input, or done
  1  the exported model differs from eager; or check found a path that no input takes
  2  wrong use, bad input, or a model that can't be converted
  3  a defect of dy2st itself (--traceback shows it)
"""

# How a system says that a process has as much of something as it may have.
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}

_TARGET = "file.py:name or package.module:name; the name is 'model' if left out"


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors as ours, a line instead of the usage text. ``commands`` are the parsers by command."""

    commands: Mapping[str, argparse.ArgumentParser]

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        """As argparse does, but what can't be written is an error."""
        if message and (file := file or sys.stderr) is not None:
            file.write(message)
            file.flush()

    def parse_all(self, arguments: list[str]) -> argparse.Namespace:
        """Parse, and tell of what is left over with its command's help, and with what may have been meant."""
        options, left = self.parse_known_args(arguments, argparse.Namespace(json=False, traceback=False))
        if left:
            import difflib

            command = self.commands[options.command] if options.command else self
            known = re.findall(r"--[a-z][\w-]*", command.format_help())
            meant = difflib.get_close_matches(left[0].partition("=")[0], known, n=1, cutoff=0.75)
            perhaps = f" (perhaps {meant[0]})" if meant else ""
            command.error(f"unrecognized arguments: {' '.join(left)}{perhaps}")
        return options


def _add_to_convert(convert: argparse.ArgumentParser) -> None:
    convert.add_argument("target", help=f"{_TARGET}; or a folder of such files")
    convert.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write (default: the target's name + .onnx); of a folder of targets, the folder to write to",
    )
    convert.add_argument("--no-check", action="store_true", help="write the file without comparing it with eager")
    convert.add_argument(
        "--embed-tests",
        action="store_true",
        help="also write the inputs, those of --search included, and what eager returns, beside the file: dy2st check "
        "FILE runs them anywhere",
    )
    convert.add_argument("--keep", action="store_true", help="keep the file even if the check fails")
    convert.add_argument(
        "--without-pass",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out a pass that makes the file smaller and faster (-v has the names), or 'all'; repeatable",
    )
    convert.add_argument(
        "--metadata",
        choices=("inside", "side", "none"),
        default="inside",
        help="where source lines and the like of nodes go: inside the file, to the side (FILE.metadata.json), or none",
    )
    convert.add_argument("-v", "--verbose", action="store_true", help="print what each of these passes did")


def _parser() -> _Parser:
    parser = _Parser(
        prog="dy2st",
        description="Turn eager PyTorch code with Python control flow on tensors into checked ONNX files.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dy2st {__version__}")
    _add_common(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    parser.commands = commands.choices

    common = _add_common(_Parser(add_help=False))

    exporting = _Parser(add_help=False)
    add_options(exporting, *OF_FILES, *OF_SEARCHES)
    exporting.add_argument(
        "--format",
        action="append",
        default=[],
        type=request,
        metavar="FORMAT[=FILE]",
        help="write the result as json, junit, sarif, github, html or markdown, to a file or to stdout; "
        "repeatable, one of them on stdout",
    )
    exporting.add_argument(
        "--strict", action="store_true", help="fail (2) where a folder has files that are left out: no model, no inputs"
    )

    def add(name: str, summary: str, *parents: _Parser) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            parents=[*parents, common],
            epilog=_EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    convert = add("convert", "write the model as an ONNX file and check it against eager", exporting)
    _add_to_convert(convert)

    check = add("check", "compare the exported model with eager on every input, leaving no file", exporting)
    check.add_argument(
        "targets",
        nargs="*",
        metavar="target",
        help=f"{_TARGET}; or a folder of such files; or an ONNX file, of which the tests beside it are run",
    )
    check.add_argument(
        "--jobs",
        type=_count,
        metavar="N",
        help="how many processes check several targets (default: one for each processor); 1 also puts a single target "
        "into a process of its own",
    )
    check.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="check on the workers of a Dask cluster, whose scheduler is at tcp://HOST:PORT",
    )
    check.add_argument(
        "--baseline",
        metavar="FILE",
        help="compare with an earlier run: fail for what is worse, and not for failures that are in it",
    )
    check.add_argument(
        "--update-baseline", action="store_true", help="write what this run finds as the baseline for later ones"
    )
    check.add_argument(
        "--no-cache", action="store_true", help="check every target anew, and keep no results for the next time"
    )
    add_options(check, *OF_CHECKS)
    check.add_argument(
        "--reproducer",
        metavar="FILE.py",
        help="where a value differs, write a small script that shows it; looks for a smaller one for a minute, or "
        "--timeout",
    )

    code = add("code", "print the rewritten source")
    code.add_argument("target", help=_TARGET)
    code.add_argument("--diff", action="store_true", help="print what changed instead")
    code.add_argument("--after", metavar="PASS", help="stop after this pass")

    init = add("init", "write settings for the models of a folder, and a workflow that checks them")
    init.add_argument("folder", nargs="?", help="where the models are: a folder below this one (default: this one)")
    init.add_argument("--force", action="store_true", help="replace settings and a workflow that are there already")

    survey = add("survey", "list the functions with control flow on tensors, and what of it would be refused")
    survey.add_argument("place", help="a folder, a file.py, or the name of an installed package; nothing is imported")
    survey.add_argument("--all", action="store_true", help="show all functions and places")
    survey.add_argument(
        "--format",
        action="append",
        default=[],
        type=request,
        metavar="FORMAT[=FILE]",
        help="write json or sarif, to a file or to stdout",
    )

    explain = add("explain", "explain an error code, or list them all")
    explain.add_argument("code", nargs="?", help="for instance D2S201")
    return parser


def command_parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command by its name, for pages that list their options."""
    return _parser().commands


def _add_common(parser: _Parser) -> _Parser:
    """The options of all commands, which may also stand before the command: there is no default to overwrite those."""
    for option, text in (
        ("--json", "print the result as JSON on stdout"),
        ("--traceback", "show the traceback of an error"),
    ):
        parser.add_argument(option, action="store_true", default=argparse.SUPPRESS, help=text)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def _execute(options: argparse.Namespace) -> int:
    require_names(options)
    if options.command != "explain":
        _require_folder()
    if options.command == "explain":
        from dy2st.cli.explain import explain as command
    elif options.command == "init":
        from dy2st.cli.init import init as command
    elif options.command == "survey":
        from dy2st.cli.survey import survey as command
    elif options.command == "code":
        from dy2st.cli.code import code as command
    elif options.command == "check" and any(each.endswith(".onnx") for each in options.targets):
        from dy2st.cli.embedded_tests import check_files as command
    elif options.command == "check":
        _require_inputs(options, options.targets)
        from dy2st.cli.check import check as command
    else:
        _require_inputs(options, [options.target])
        from dy2st.cli.convert import convert as command
    code = command(options)
    sys.stdout.flush()  # what can't be written is said by us, and not at the end of Python
    return code


def _require_folder() -> None:
    """Accept a working folder that is there."""
    try:
        os.getcwd()  # noqa: PTH109 - no Path here
    except OSError as error:
        raise UsageError("the working folder is gone", hint="cd into one that is there") from error


def _require_inputs(options: argparse.Namespace, targets: Sequence[str]) -> None:
    """Of a single target whose source alone says that it has no inputs, say so before torch is imported."""
    if len(targets) == 1 and not (options.json or options.format):
        from dy2st.cli.output import StagedOutput
        from dy2st.cli.source_inputs import require_inputs

        if getattr(options, "output", None) is not None and not os.path.isdir(targets[0]):  # noqa: PTH112 - no Path here
            StagedOutput(options.output).probe()
        require_inputs(targets[0], options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Prints nothing but results on stdout."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = argparse.Namespace(json="--json" in arguments, traceback="--traceback" in arguments)
    try:
        parser = _parser()
        options = parser.parse_all(with_default_seconds(arguments))
        options.json = options.json or Request("json") in getattr(options, "format", ())
        if options.command is None:
            parser.print_help(sys.stderr)
            return USAGE
        return _execute(options)
    except SystemExit as stop:  # --help, --version
        return stop.code if isinstance(stop.code, int) else USAGE
    except KeyboardInterrupt:
        sys.stderr.write("dy2st: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: `dy2st code … | head`
        _forget_output()
        return OK
    except OSError as error:
        if error.errno in _NO_MORE:
            return report_error(UsageError(f"this system gives no more: {error.strerror}"), options)
        if error.errno not in NO_ROOM:
            return report_error(error, options)
        _forget_output()
        options.json = False
        what = error.filename or "the output"
        return report_error(SaveError(f"{what} can't be written: {error.strerror}"), options)
    except Exception as error:  # noqa: BLE001 - the last line of defence: every exception gets its exit code
        return report_error(error, options)


def _forget_output(stream: TextIO | None = None) -> None:
    """What is still to be written to a stream, stdout by itself, goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def run() -> NoReturn:
    """The console script: a termination signal unwinds, so that temporary files are removed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who has started this: nothing else may get its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as we run
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    for stream in (sys.stdout, sys.stderr):  # what an encoding has no letters for is written as Python writes it
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Where onnxruntime can't keep a file of its own in the home folder, it would say so in the middle of our lines.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        code = main()
    except OSError:  # stderr can't be written: there is nobody to tell
        code = USAGE
    with contextlib.suppress(ValueError):  # all is done: an interrupt while Python ends would only show its own lines
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # an error as JSON: it was said on stderr, too
            _forget_output(stream)
            code = code or USAGE
    sys.exit(code)
