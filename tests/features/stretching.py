"""Calls of torch's functions of several tensors, found in torch's own registry, with a dynamic size for each tensor.

A call is one that eager takes where all sizes are three. ``equal_or_told`` runs it at other sizes: the program and the
file give what eager gives, or fail with a message that names the sizes, or the export is refused.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from harness import Input, call, compare, outcomes, run_onnx, run_program
from torch import Tensor
from torch.export import Dim
from torch.utils import _pytree as pytree

import dy2st
import dy2st.errors
import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# What a tensor of n is: its shape, and the dimension that is n.
SHAPES: dict[str, tuple[Callable[[int], tuple[int, ...]], int]] = {
    "rows": (lambda n: (n, 3), 0),
    "vector": (lambda n: (n,), 0),
    "batch": (lambda n: (n, 3, 3), 0),
    "columns": (lambda n: (3, n), 1),
}
KINDS = ("float", "bool", "index")
# What failing programs and files say where sizes are not those that they are right for.
TOLD = re.compile(r"exported for|eager raises here|Guard failed")
# Arguments that are no tensors, by type.
NUMBERS: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 3),
    "number": (0.5, 1),
    "float": (0.5,),
    "bool": (False,),
    "List[int]": ([0], [1], [3]),
    "str": ("sum",),
}
MOST_TRIALS = 6000

LEFT_OUT = {
    "of another backend or layout": r"cudnn|miopen|mkldnn|fbgemm|mps_|quantize|sparse|hspmm|smm|sspaddmm",
    "no function of the user's, or of the backward pass": r"backward|is_set_to|^set_$|resize|batch_norm_(elemt|gather|"
    r"update)|slice_inverse|^to$|^result_type$|is_same_size|^convolution|native_",
    "draws numbers": r"^normal$|bernoulli|binomial|randint|dropout|fractional",
    "its operands depend on each other by more than sizes, and eager does not check": r"embedding_bag|embedding_renorm|"
    r"unpool|segment_reduce|lu_unpack|ormqr|orgqr|householder|ldl_solve|lu_solve|multilabel_margin|as_strided|ctc_loss",
    "weights of layers, which fix their sizes": r"lstm|gru|rnn|batch_norm|grid_sampler",
    "its result is not compared by value here": r"stft|histogramdd|lstsq|geqrf|triangular_solve|quantile|histogram",
    "takes any sizes": r"atleast|meshgrid|block_diag|linspace|logspace|^put_?$|^take$|chain_matmul",
    "gives a bool or a tuple of its own": r"^equal$|allclose|broadcast_tensors",
}


def tensor(kind: str, layout: str, n: int, place: int) -> Tensor:
    """The operand at a place of a call."""
    shape = SHAPES[layout][0](n)
    flat = torch.arange(torch.Size(shape).numel())
    if kind == "float":
        return (torch.sin(flat * 1.7 + place) * 0.3 + 0.5 + 0.05 * place).reshape(shape)
    # An index is that of the first element: in range, if there is anything.
    return ((flat + place) % 2 == 0 if kind == "bool" else flat * 0).reshape(shape)


def sizes_of(count: int) -> list[tuple[int, ...]]:
    """Sizes of so many tensors: three of each first, then some of one, and one or all of none."""
    few = {*itertools.product((1, 3), repeat=count)}
    few |= {tuple(0 if i == j else n for j in range(count)) for i in range(count) for n in (0, 1, 3)}
    return sorted(few, key=lambda sizes: (sizes != (3,) * count, sizes))


@dataclass(frozen=True)
class Call:
    """One call: ``text`` with the names ``a``, ``b``, ... for tensors."""

    text: str
    kinds: tuple[str, ...]
    layouts: tuple[str, ...]
    # The first tensor is written to.
    writes: bool = False

    def source(self) -> str:
        """A model that makes it, and looks at the result's sizes."""
        names = ", ".join("abcd"[: len(self.kinds)])
        first = "    a = a.clone()\n" if self.writes else ""
        last = "    return y, list(y.shape) if isinstance(y, torch.Tensor) else None\n"
        imports = "import torch\nimport torch.nn.functional as F\n"
        return f"{imports}\n\ndef model({names}):\n{first}    y = {self.text}\n{last}"

    def tensors(self, sizes: Sequence[int]) -> Input:
        """Its operands at these sizes."""
        found = zip(self.kinds, self.layouts, sizes, strict=True)
        return tuple(tensor(kind, layout, n, place) for place, (kind, layout, n) in enumerate(found))

    def shapes(self, dims: Sequence[Any]) -> tuple[Any, ...]:
        """``dynamic_shapes`` with one Dim for each operand."""
        return tuple({SHAPES[layout][1]: dim} for layout, dim in zip(self.layouts, dims, strict=True))

    def in_range(self, sizes: Sequence[int]) -> bool:
        """Whether there is something for each index."""
        pairs = list(zip(self.kinds, sizes, strict=True))
        none = any(n == 0 for kind, n in pairs if kind != "index")
        return not (none and any(n > 0 for kind, n in pairs if kind == "index"))


# ---- calls found in torch's registry


def public(name: str) -> str | None:
    """What the user calls an operator: ``torch.linalg.cross``."""
    owners = {"torch": torch, "F": torch.nn.functional, "torch.linalg": torch.linalg, "torch.special": torch.special}
    owners |= {"torch.Tensor": Tensor}  # type: ignore[dict-item]
    for text, owner in owners.items():
        prefix = {"torch.linalg": "linalg_", "torch.special": "special_"}.get(text, "")
        short = name.removeprefix(prefix)
        if name.startswith(prefix) and not short.startswith("_") and hasattr(owner, short):
            return f"{text}.{short}"
    return None


@functools.cache
def operators() -> dict[str, list[Any]]:
    """Operators with a public name and two tensors at least: their schemas."""
    left_out = re.compile("|".join(LEFT_OUT.values()))
    found: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        usable = name != schema.name and not name.startswith("_") and not any(a.is_out for a in schema.arguments)
        if usable and _tensors(schema) > 1 and public(name) is not None and not left_out.search(name):
            found.setdefault(name, []).append(schema)
    return found


def _tensors(schema: Any) -> int:
    counts = {"Tensor": 1, "Optional[Tensor]": 1, "List[Tensor]": 2, "List[Optional[Tensor]]": 2}
    return sum(counts.get(str(argument.type), 0) for argument in schema.arguments)


def _texts(function: str, schema: Any) -> Iterator[tuple[str, int]]:
    """Calls by a schema, and how many tensors each takes."""
    optional = [a.name for a in schema.arguments if str(a.type) == "Optional[Tensor]"]
    for given in range(len(optional) + 1):
        names = iter("abcdefgh")
        parts: list[tuple[str, ...]] = []
        for a in schema.arguments:
            kind, prefix = str(a.type), f"{a.name}=" if a.kwarg_only else ""
            if kind == "Tensor":
                parts.append((prefix + next(names),))
            elif kind == "List[Tensor]":
                parts.append((f"{prefix}[{next(names)}, {next(names)}]",))
            elif kind == "List[Optional[Tensor]]":
                parts.append((f"{prefix}({next(names)},)",))
            elif a.name in optional[:given]:
                parts.append((f"{a.name}={next(names)}",))
            elif kind == "Optional[Tensor]" and not a.has_default_value():
                parts.append((prefix + "None",))
            elif not a.has_default_value():
                parts.append(tuple(f"{prefix}{value!r}" for value in NUMBERS.get(kind, ())))
        count = "abcdefgh".index(next(names))
        if 2 <= count <= 4:
            for chosen in itertools.product(*parts):
                ordered = sorted(chosen, key=lambda part: "=" in part)
                yield f"{function}({', '.join(ordered)})", count


def _layouts(count: int) -> list[tuple[str, ...]]:
    if count == 2:
        return list(itertools.product(SHAPES, repeat=2))
    alike = [(layout,) * count for layout in SHAPES]
    mixed = [("rows", *("vector",) * (count - 1)), ("batch", *("vector",) * (count - 1))]
    return alike + mixed + (list(itertools.product(("rows", "vector"), repeat=3)) if count == 3 else [])


def calls(name: str) -> list[Call]:
    """Two calls of an operator: the one that eager takes at most sizes, and one with operands of one layout."""
    function = public(name)
    assert function is not None
    found: dict[tuple[str, ...], tuple[tuple[int, int], Call]] = {}
    tried = 0
    for schema in operators()[name]:
        for text, count in _texts(function, schema):
            for kinds, layouts in itertools.product(itertools.product(KINDS, repeat=count), _layouts(count)):
                made = Call(text, kinds, layouts, name.endswith("_"))
                tried += 1
                if tried > MOST_TRIALS or not _runs(made, (3,) * count):
                    continue
                taken = [sizes for sizes in sizes_of(count) if _runs(made, sizes)]
                score = (sum({1, 3} <= set(sizes) for sizes in taken), len(taken))
                if layouts not in found or score > found[layouts][0]:
                    found[layouts] = (score, made)
    best = [made for _, made in sorted(found.values(), key=lambda each: each[0], reverse=True)]
    alike = [made for made in best if len(set(made.layouts)) == 1]
    return list(dict.fromkeys([*best[:1], *alike[:1]]))


def _runs(made: Call, sizes: Sequence[int]) -> bool:
    names = dict(zip("abcd", made.tensors(sizes), strict=False))
    try:
        result = eval(made.text, {"torch": torch, "F": torch.nn.functional}, names)
    except Exception:  # noqa: BLE001 - eager may raise anything
        return False
    leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
    return bool(leaves) and not any(leaf.is_complex() or leaf.is_sparse for leaf in leaves)


# ---- the proof


def written(source: str, folder: Path) -> Callable[..., Any]:
    """The function ``model`` of a module."""
    file = folder / "stretched.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("stretched", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: Callable[..., Any] = module.model
    return model


def equal_or_told(model: Callable[..., Any], inputs: Sequence[Input], dynamic_shapes: Any) -> str:
    """Program and file give what eager gives, or say which sizes they are for. The first input is the example.

    Returns: ``"equal"``, ``"told"`` or the code of the refusal.
    """
    wanted = [(given, call(model, given)) for given in inputs]
    example, _ = wanted[0]
    try:
        program = dy2st.export(model, example, dynamic_shapes=dynamic_shapes)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            dy2st.onnx.export(program, f=file)
            run_file = run_onnx(file)
    except dy2st.errors.Dy2stError as error:
        assert error.what  # noqa: PT017 - a refusal says what was met
        outcomes.append("R")
        return error.code
    told = False
    for where, run, state in (("program", run_program(program), True), ("onnxruntime", run_file, False)):
        for given, want in wanted:
            shapes = [tuple(leaf.shape) for leaf in given]
            try:
                got = run(given)
            except Exception as error:  # noqa: BLE001 - a guard of torch, ours, or onnxruntime's
                assert TOLD.search(str(error)), f"{where}, {shapes}: {error}"  # noqa: PT017 - any kind of exception
                told = True
                # The example is what the program is made for.
                assert given is not example
                continue
            compare(want, got, f"{where}, {shapes}", state=state)
    outcomes.append("Y")
    return "told" if told else "equal"


def stretched(made: Call, dims: Sequence[Any], folder: Path) -> str:
    """``equal_or_told`` of a call at all sizes that eager takes."""
    model = written(made.source(), folder)
    every = [sizes for sizes in sizes_of(len(dims)) if made.in_range(sizes)]
    if len(set(map(id, dims))) == 1 and isinstance(dims[0], Dim):
        every = [sizes for sizes in every if len(set(sizes)) == 1]
    return equal_or_told(model, [made.tensors(sizes) for sizes in every if _runs(made, sizes)], made.shapes(dims))
