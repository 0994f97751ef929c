"""A script made smaller for as long as the same thing goes wrong: sets, statements, expressions, sizes and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import libcst as cst
import torch
from torch.utils import _pytree as pytree

from dy2st.parity.inputs import InputSet
from dy2st.reproducer.edits import edits, replaced, statements, without
from dy2st.reproducer.script import Script
from dy2st.reproducer.trials import Trials


def reduced(script: Script, trials: Trials, progress: Callable[[str], None] = lambda _: None) -> Script:
    """The smallest script that is found with the trials that there are; ``script`` itself goes wrong."""
    steps = (_fewer_sets, _seeded, _smaller, _plainer, _fewer_statements, _simpler)
    before = None
    while script != before and trials.go_on():
        before = script
        for step in steps:
            progress(f"making the script smaller: {len(script.source.splitlines())} lines, {trials.made} trials")
            script = step(script, trials)
    return script


def _tried(script: Script, trials: Trials) -> bool:
    """Whether a script still goes wrong; one that can't be written is none."""
    try:
        text, saved = script.text((), "")
        compile(text, "<script>", "exec")
    except (SyntaxError, ValueError):
        return False
    held = "".join(f"{key}{float(each.double().sum())}{list(each.shape)}" for key, each in saved.items())
    return trials.fails(script, text + held)


def _seeded(script: Script, trials: Trials) -> Script:
    """The weights of the seed in place of those given, and the shapes that the sets tell."""
    if script.state is not None and _tried(replace(script, state=None), trials):
        script = replace(script, state=None)
    if script.dynamic_shapes is not None and _tried(replace(script, dynamic_shapes=None), trials):
        script = replace(script, dynamic_shapes=None)
    return script


def _fewer_sets(script: Script, trials: Trials) -> Script:
    """One set of inputs, if one is enough."""
    for each in script.sets if len(script.sets) > 1 else ():
        alone = replace(script, sets=(each,))
        if _tried(alone, trials):
            return alone
    for each in script.sets:
        fewer = replace(script, sets=tuple(other for other in script.sets if other is not each))
        if fewer.sets and _tried(fewer, trials):
            script = fewer
    return script


def _fewer_statements(script: Script, trials: Trials) -> Script:
    """Delta debugging: runs of statements left out, half of them first, then quarters, and so on down to one."""
    module = cst.parse_module(script.source)
    size = max(1, len(statements(module)) // 2)
    while trials.go_on():
        there = statements(module)
        place = len(there)  # from the end: what comes first is used by what comes later
        while place > 0 and trials.go_on():
            begin = max(0, place - size)
            fewer = without(module, set(there[begin:place]))
            changed = replace(script, source=fewer.code)
            if fewer.code != module.code and _tried(changed, trials):
                script, module, there = changed, cst.parse_module(fewer.code), []
                there = statements(module)
                begin = min(begin, len(there))
            place = begin
        if size == 1:
            break
        size //= 2
    return script


def _simpler(script: Script, trials: Trials) -> Script:
    """Blocks without their heads, results and operands dropped, one after the other."""
    place = 0
    while trials.go_on():
        module = cst.parse_module(script.source)
        choices = list(edits(module))
        if place >= len(choices):
            return script
        changed = replace(script, source=replaced(module, *choices[place]).code)
        if len(changed.source) < len(script.source) and _tried(changed, trials):
            script = changed
        else:
            place += 1
    return script


def _smaller(script: Script, trials: Trials) -> Script:
    """Sizes that the tensors of a set share, cut down together."""
    for number in range(len(script.sets)):
        for size in sorted(_sizes(script.sets[number]), reverse=True):
            for less in dict.fromkeys((1, 2, size // 2, size - 1)):
                if 0 < less < size and size in _sizes(script.sets[number]):
                    changed = _with_set(script, number, partial(_cut, size=size, less=less))
                    if _tried(changed, trials):
                        script = changed
                        break
    return script


def _plainer(script: Script, trials: Trials) -> Script:
    """Tensors of ones or of whole numbers, where these do as well."""
    for number in range(len(script.sets)):
        for place, tensor in enumerate(_tensors(script.sets[number])):
            for plain in _plain(tensor):
                changed = _with_tensor(script, number, place, plain)
                if _tried(changed, trials):
                    script = changed
                    break
    return script


def _plain(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from (each for each in (torch.ones_like(tensor), torch.zeros_like(tensor)) if not torch.equal(each, tensor))
    if tensor.is_floating_point() and not torch.equal(tensor.round(), tensor):
        yield tensor.round()
        yield (tensor * 8).round() / 8


def _tensors(inputs: InputSet) -> Sequence[torch.Tensor]:
    return [each for each in pytree.tree_leaves((inputs.args, inputs.kwargs)) if isinstance(each, torch.Tensor)]


def _sizes(inputs: InputSet) -> set[int]:
    return {size for tensor in _tensors(inputs) for size in tensor.shape if size > 1}


def _cut(tensor: torch.Tensor, *, size: int, less: int) -> torch.Tensor:
    for axis, length in enumerate(tensor.shape):
        if length == size:
            tensor = tensor.narrow(axis, 0, less)
    return tensor.contiguous()


def _with_tensor(script: Script, number: int, place: int, plain: torch.Tensor) -> Script:
    at = iter(range(len(_tensors(script.sets[number]))))
    return _with_set(script, number, lambda tensor: plain if next(at) == place else tensor)


def _with_set(script: Script, number: int, change: Callable[[torch.Tensor], torch.Tensor]) -> Script:
    old = script.sets[number]
    args, kwargs = pytree.tree_map_only(torch.Tensor, change, (old.args, old.kwargs))
    new: Any = InputSet(old.name, args, kwargs)
    return replace(script, sets=(*script.sets[:number], new, *script.sets[number + 1 :]))
