"""The page ``docs/embedded-tests.md``: the reader that it shows reads what is written, and no key goes unsaid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import torch

import dy2st
from dy2st.embedded.array_file import DTYPES
from dy2st.embedded.fingerprints import PROOF, metadata_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "embedded-tests.md").read_text()


def made():
    def model(x):
        return x * 2 if x.sum() > 0 else x - 1

    dy2st.onnx.export(model, (torch.ones(3),), "m.onnx")
    dy2st.embed_tests(model, [(torch.ones(3),), (-torch.ones(3),)], "m.onnx")


def keys(value):
    """The keys of objects in objects and lists; not those of ``inputs``, ``taken`` and the like, which are names."""
    if isinstance(value, list):
        return {key for each in value for key in keys(each)}
    if not isinstance(value, dict):
        return set()
    named = {key: list(inner.values()) if key in {"inputs", "taken"} else inner for key, inner in value.items()}
    return set(value) | {key for inner in named.values() for key in keys(inner)}


def test_the_reader_of_the_page(folder):
    made()
    code = re.search(r"<!-- test: reader -->\n```python\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    seen = {}
    exec(code, seen)
    assert len(seen["found"]) == 1


def test_every_key_is_on_the_page(folder):
    made()
    content = Path("m.onnx.tests.safetensors").read_bytes()
    texts = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    proof = json.loads(metadata_of(onnx.load("m.onnx"), PROOF))
    tests = json.loads(texts["tests"])
    found = {*texts, *keys(tests), *proof, *DTYPES}
    assert {key for key in found if f"`{key}`" not in PAGE} == set()
