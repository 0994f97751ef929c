"""Golden files: `before`, `# output`, `after`. DY2ST_UPDATE_GOLDEN=1 writes what the passes make now."""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from pathlib import Path

import libcst as cst
import pytest
from lowering import lowered, named

from dy2st.transforms import PASSES, Pass

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.txt"))
MARK = "# output\n"


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden(path: Path) -> None:
    before, _, after = path.read_text().partition(MARK)
    passes = PASSES if path.parent.name == "all" else (named(path.parent.name),)
    result = lowered(before, passes)
    if os.environ.get("DY2ST_UPDATE_GOLDEN"):
        path.write_text(before + MARK + result)
    else:
        assert result == after
    compile(result, str(path), "exec")
    assert cst.parse_module(result).code == result


def test_every_pass_has_golden_files() -> None:
    folders = {path.parent.name for path in FILES}
    assert folders == {kind.__name__ for kind in PASSES} | {"all"}


def example(kind: type[Pass], section: str) -> str:
    found = re.search(rf"^{section}:\n((?:    .*\n|\n)+)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
    assert found, f"{kind.__name__} has no {section} section"
    return textwrap.dedent(found[1]).strip() + "\n"


@pytest.mark.parametrize("kind", PASSES, ids=lambda k: k.__name__)
def test_documentation(kind: type[Pass]) -> None:
    text = kind.__doc__ or ""
    for section in ("Order:", "Refuses:", "Source:"):
        assert section in text
    before, after = example(kind, "Before"), example(kind, "After")
    # What a match or a try is lowered to holds branches; their jumps and returns are other passes' business.
    assert lowered(before, (kind,)) == after
