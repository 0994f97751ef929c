"""The script: what it is made of, and its text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from dy2st.parity.inputs import InputSet
from dy2st.reproducer.literals import Literals, shapes_text
from dy2st.reproducer.names import bound

# What the script calls its own things, unless the user's code has such names.
_OWN = ("saved", "model", "inputs", "report")
_OWN_IMPORTS = ("import sys", "import torch", "import dy2st")


@dataclass(frozen=True)
class Script:
    """The user's source, the expression that makes the model of it, its weights, and the sets of inputs.

    ``state`` is None where the weights are those of the seed; ``training`` is the mode, None for no module. ``options``
    go to ``dy2st.check``.
    """

    source: str
    build: str
    sets: tuple[InputSet, ...]
    state: Mapping[str, torch.Tensor] | None = None
    training: bool | None = None
    dynamic_shapes: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def text(self, about: Sequence[str], pt_file: str) -> tuple[str, dict[str, torch.Tensor]]:
        """The whole script, with ``about`` at its top, and the tensors that ``pt_file`` beside it must hold.

        Raises:
            UsageError: an argument has no form as text.
        """
        names = self._own_names()
        literals = Literals(names["saved"])
        model, inputs, report = names["model"], names["inputs"], names["report"]
        lines = [f"{model} = {self.build}"] if self.build != model else []
        if self.state:
            lines.append(f"{model}.load_state_dict({literals.text(dict(self.state), 'state')})")
        if self.training is False or (self.training and "eval" in self.source):  # a module that is made is in training
            lines.append(f"{model}.train({self.training})")
        lines.append(f"{inputs} = [")
        for each in self.sets:
            one = each.kwargs if each.kwargs and not each.args else each.args
            lines.append(f"    {literals.text(one, f'input_{each.name}')},")
        lines.append("]")
        shapes = {} if self.dynamic_shapes is None else {"dynamic_shapes": shapes_text(self.dynamic_shapes)}
        given = {**shapes, **{key: repr(value) for key, value in self.options.items()}}
        more = "".join(f", {key}={value}" for key, value in given.items())
        lines += [f"{report} = dy2st.check({model}, {inputs}{more})", f"print({report})"]
        lines.append(f"sys.exit(0 if {report}.ok else 1)")
        load = f'{names["saved"]} = torch.load(Path(__file__).with_name("{pt_file}"), weights_only=True)'
        begin = [*([load] if literals.saved else []), "torch.manual_seed(0)"]
        path = ["from pathlib import Path"] if literals.saved else []
        head = '"""' + "\n".join(about).replace("\\", "\\\\").replace('"""', "'''") + '\n"""'
        return "\n\n".join([head, self.code(path, begin), "\n".join(lines)]) + "\n", literals.saved

    def code(self, imports: Sequence[str] = (), begin: Sequence[str] = ()) -> str:
        """The user's source with the imports that the script needs, and more of these and lines below them."""
        lines = [line.rstrip() for line in self.source.splitlines()]
        futures = [line for line in lines if line.startswith("from __future__ ")]
        rest = [line for line in lines if line not in futures and line not in _OWN_IMPORTS]
        own = "\n".join(["import sys", *imports, "", "import torch", "", "import dy2st"])
        parts = ["\n".join(futures), own, "\n".join(begin), "\n".join(rest).strip("\n")]
        return "\n\n".join(part for part in parts if part)

    def _own_names(self) -> dict[str, str]:
        used = {node.id for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.Name)}
        used |= {name for statement in ast.parse(self.source).body for name in bound(statement)}
        names = {name: f"{name}_" if name in used else name for name in _OWN}
        if self.build.isidentifier():
            names["model"] = self.build
        return names
