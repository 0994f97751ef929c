"""Programs in which each name is a variable, an attribute, a key, a parameter, a function, an input and an output."""

from __future__ import annotations

from collections.abc import Iterable

from renaming import FOREIGN

VARIABLES = """\
import torch
from torch.export import Dim


def model({parameters}):
    first, *_ = xx_all = [{parameters}]
    xx = first + 0
    {start}
    while xx.sum() > 1:
        if xx.max() > 9:
            {jump}
            break
        for xx_item in xx:
            if xx_item < -2:
                break
            {inner}
        {halve}
        xx = xx / 2
    {chosen}
    {each}
    return {{{results}}}


SETS = [({sets_a},), ({sets_b},), ({sets_c},)]
DYNAMIC = ({dynamic},)
"""

MEMBERS = """\
import functools
import operator

import torch
from torch import nn
from torch.export import Dim


class XxBox:
    def __init__(xx_self, {parameters}):
        {stored}

    def xx_more(xx_self, *, {parameters}):
        {grown}
        return [{parameters}]

    def __call__(xx_self, **xx_given):
        return sum(xx_given.values())


def xx_through({parameters}):
    xx_made = torch.zeros(())
    {summed}
    return xx_made


def xx_given(**xx_all):
    return sum(xx_all[xx_key] * (xx_i + 1) for xx_i, xx_key in enumerate(xx_all))


@functools.lru_cache
def xx_cached(**xx_all):
    return sum(xx_all.values())


class XxModel(nn.Module):
    def __init__(xx_self):
        super().__init__()
        {buffers}

    def forward(xx_self, xx):
        xx_box = XxBox({passed})
        xx_dict = {{{entries}}}
        while xx.sum() > 1:
            if xx.max() > 3:
                {changed}
            {swapped}
            xx = xx / 2
        {functions}
        xx_sum = xx_through({from_dict}) + functools.partial(xx_through, {half})({other_half})
        xx_sum = xx_sum + xx_given(**xx_dict) + xx_cached({from_dict}) + xx_box(**xx_dict)
        xx_sum = xx_sum + torch.stack(xx_box.xx_more({passed})).sum()
        xx_sum = xx_sum + operator.methodcaller("xx_more", {passed})(xx_box)[0]
        {buffered}
        if xx_sum > 0:
            xx_sum = xx_sum + {called}
        return xx_sum, xx_dict, {{{attributes}}}


model = XxModel().eval()
SETS = [(torch.tensor([1.0, 2.0]),), (torch.tensor([5.0, -1.0, 4.0]),), (torch.tensor([-1.0, -2.0]),)]
DYNAMIC = ({{0: Dim.DYNAMIC}},)
"""
# What the programs themselves need by name.
AVOID = frozenset("torch nn Dim functools operator super sum enumerate first model SETS DYNAMIC".split())
CHOICES = (
    "{n} = {n} if xx.sum() > 1 else -{n}",
    "{n} = (xx.sum() > 2 and {n}) or xx.sum()",
    "xx = xx + 1 if xx.sum() > 0 and ({n} := {n} + 1) > 2 else xx",
)
INPUTS = ("[1.0, 2.0]", "[5.0, -1.0, 10.0]", "[-1.0, -2.5]")


def lines(parts: Iterable[str], depth: int) -> str:
    """Statements at a depth of indentation, the first one indented already."""
    return ("\n" + "    " * depth).join(parts)


def variables(names: list[str]) -> str:
    """The names as inputs, variables that all kinds of statements assign, and outputs."""
    inputs = [", ".join(f"torch.tensor({numbers})" for _ in names) for numbers in INPUTS]
    return VARIABLES.format(
        parameters=", ".join(names),
        start=lines((f"{n} = {n}.sum() + {i}" for i, n in enumerate(names)), 1),
        jump=lines((f"{n} = {n} + 1" for n in names[::2]), 3),
        inner=lines((f"{n} = {n} + xx_item" for n in names[1::2]), 3),
        halve=lines((f"{n} = {n} / 2" for n in names), 2),
        chosen=lines((CHOICES[i % len(CHOICES)].format(n=n) for i, n in enumerate(names)), 1),
        each=lines((f"xx = xx + torch.stack([{n} * 2 for {n} in xx]).sum()" for n in names[-3:]), 1),
        results=", ".join(f'"{n}": {n}' for n in names),
        sets_a=inputs[0],
        sets_b=inputs[1],
        sets_c=inputs[2],
        dynamic=", ".join("{0: Dim.DYNAMIC}" for _ in names),
    )


def members(names: list[str]) -> str:
    """The names as attributes, keys, parameters, keywords, functions and buffers."""
    own = [name for name in names if name not in FOREIGN]
    half = len(names) // 2
    return MEMBERS.format(
        parameters=", ".join(names),
        stored=lines((f"xx_self.{n} = {n}" for n in names), 2),
        grown=lines((f"xx_self.{n} = xx_self.{n} + {n}" for n in names), 2),
        summed=lines((f"xx_made = xx_made + {n} * {i}" for i, n in enumerate(names)), 1),
        buffers=lines((f'xx_self.register_buffer("{n}", torch.tensor({i}.0))' for i, n in enumerate(own)), 2) or "pass",
        passed=", ".join(f"{n}=xx.sum() + {i}" for i, n in enumerate(names)),
        entries=", ".join(f'"{n}": xx.sum() - {i}' for i, n in enumerate(names)),
        changed=lines((f'xx_box.{n} = xx_dict["{n}"] = xx_box.{n} + 1' for n in names), 4),
        swapped=lines((f'xx_box.{n}, xx_dict["{n}"] = xx_dict["{n}"], xx_box.{n} / 2' for n in names), 3),
        functions=lines(
            (
                f"def {n}(xx_y, {names[i - 1]}=1):\n            return xx_y + {names[i - 1]}"
                for i, n in enumerate(names)
            ),
            2,
        ),
        from_dict=", ".join(f'{n}=xx_dict["{n}"]' for n in names),
        half=", ".join(f"{n}=xx_box.{n}" for n in names[:half]),
        other_half=", ".join(f'{n}=xx_dict["{n}"]' for n in names[half:]),
        buffered=lines((f"xx_self.{n} = xx_self.{n} + xx_sum" for n in own), 2) or "pass",
        called=" + ".join(f"{n}(xx_sum, {names[i - 1]}=xx_sum)" for i, n in enumerate(names)),
        attributes=", ".join(f'"{n}": xx_box.{n}' for n in names),
    )
