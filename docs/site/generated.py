"""The parts of the site that come from the code: help of commands, pages of error codes, pages of samples.

Nothing here imports torch or MkDocs.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.main import command_parsers
from dy2st.errors.pages import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.errors import Dy2stError

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {
    "D2S1": "Source",
    "D2S2": "Staging",
    "D2S3": "Capture",
    "D2S4": "ONNX",
    "D2S5": "Parity",
    "D2S9": "Usage",
}


def command_help() -> str:
    """A section for each command: what it does, its arguments and options."""
    return "\n\n".join(_command(name, parser) for name, parser in command_parsers().items())


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    actions = [each for each in parser._actions if each.help != argparse.SUPPRESS and each.dest != "help"]  # noqa: SLF001 - argparse has no public list
    rows = [f"| {_usage(each)} | {_cell(each.help or '')} |" for each in actions]
    table = "\n".join(["| argument | meaning |", "|--|--|", *rows])
    return f"### dy2st {name}\n\n{parser.description}\n\n{table}"


def _usage(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = action.metavar or (" or ".join(map(str, action.choices)) if action.choices else "")
    told = value if isinstance(value, str) else " ".join(value)
    return ", ".join(f"`{option} {told}`" if told else f"`{option}`" for option in action.option_strings)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("%%", "%")


def error_index() -> str:
    """A table for each family of codes."""
    parts = []
    for start, family in FAMILIES.items():
        rows = [
            f"| [{code}](errors/{code}.md) | {kind.__name__} | {_cell(_prose(kind).partition(chr(10))[0])} |"
            for code, kind in kinds().items()
            if code.startswith(start)
        ]
        parts.append("\n".join([f"## {family}", "", "| code | class | what it means |", "|--|--|--|", *rows]))
    return "\n\n".join(parts)


def error_pages() -> dict[str, str]:
    """The page of each code, by its path in the site."""
    return {f"reference/errors/{code}.md": _error_page(code, kind) for code, kind in kinds().items()}


def _error_page(code: str, kind: type[Dy2stError]) -> str:
    what, *examples = re.split(r"^(Before|After):\n", inspect.cleandoc(kind.__doc__ or ""), flags=re.MULTILINE)
    parts = [f"# {code} {kind.__name__}", _linked(what.strip())]
    titles = {"Before": "This raises it", "After": "Write this instead"}
    for title, text in zip(examples[::2], examples[1::2], strict=True):
        parts += [f"## {titles[title]}", f"```python\n{textwrap.dedent(text).strip()}\n```"]
    parts.append("[All codes](../errors.md)")
    return "\n\n".join(parts) + "\n"


def _prose(kind: type[Dy2stError]) -> str:
    return _linked(inspect.cleandoc(kind.__doc__ or ""))


def _linked(text: str) -> str:
    """Markdown of a docstring: its code in single backquotes, without the roles of Sphinx."""
    return re.sub(r":\w+:(?=`)", "", text).replace("``", "`")


def sample_pages() -> dict[str, str]:
    """The page of each sample, by its path in the site."""
    return {f"gallery/{path.stem}.md": _sample_page(path) for path in _samples()}


def sample_index() -> str:
    """A line for each sample, with links as in the repository: the page of the gallery has it in its text."""
    rows = []
    for path in _samples():
        title, _, _ = _docstring(path).partition("\n")
        rows.append(f"| [{path.stem}](../../samples/{path.name}) | {_cell(_linked(title))} |")
    return "\n".join(["| sample | what it is |", "|--|--|", *rows])


def _samples() -> list[Path]:
    return sorted((ROOT / "samples").glob("*.py"))


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def _sample_page(path: Path) -> str:
    text = _docstring(path)
    prose, _, table = text.partition("\n\n===")
    title, _, rest = prose.partition("\n")
    drawn = f"{_markdown_table(f'==={table}')}\n\n" if table else ""
    source = path.read_text().rstrip()
    return (
        f"# {path.stem}\n\n{_linked(title)}\n\n{_linked(rest.strip())}\n\n{drawn}"
        f'```sh\ndy2st convert samples/{path.name}\n```\n\n```python title="samples/{path.name}"\n{source}\n```\n'
    )


def operator_table() -> str:
    """What is translated by ours, by the module that does it: its first line, and the names of torch's operators."""
    rows = []
    for path in sorted((ROOT / "dy2st" / "onnx" / "translations").glob("[a-z]*.py")):
        names = translated_names(path)
        if names and path.stem != "control_flow":
            title = _cell(_linked(_docstring(path).partition("\n\n")[0].replace("\n", " ")))
            rows.append(f"| {title} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(["| what | operators |", "|--|--|", *rows])


def translated_names(path: Path) -> list[str]:
    """The operators of torch that a module's ``TRANSLATIONS`` name, without their overloads."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "TRANSLATIONS" and isinstance(node, ast.AnnAssign):
            text = ast.unparse(node)
            found |= set(re.findall(r"(?:torch\.ops\.)?\baten\.(\w+)", text))
    return sorted(found)


def _markdown_table(text: str) -> str:
    """A table of Markdown from one of reStructuredText without a header, as samples have it."""
    ruler, *lines = text.splitlines()
    second = re.match(r"=+ +", ruler)
    assert second, text
    rows: list[list[str]] = []
    for line in lines:
        left, right = line[: second.end()].strip(), line[second.end() :].strip()
        if line.startswith("="):
            continue
        if left:
            rows.append([left, right])
        else:  # a cell that goes on in the next line
            rows[-1][1] += f" {right}"
    told = [f"| {_cell(_linked(left))} | {_cell(_linked(right))} |" for left, right in rows]
    return "\n".join(["| in the source | in the file |", "|--|--|", *told])


# What stands for `<!-- generated: NAME -->` on a page.
SECTIONS: dict[str, Callable[[], str]] = {
    "commands": command_help,
    "errors": error_index,
    "operators": operator_table,
}
