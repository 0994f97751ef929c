"""The joins of one variable at the ends of two arms, where that takes more than its two values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.utils import _pytree as pytree

from dy2st.errors import DifferentObjectsError
from dy2st.staging.lattice.join import TAGGED_UNION, Incompatible, Invariant, Join, Structured, join
from dy2st.tracing.subgraph import Subgraph
from dy2st.values.container_structure import open_container
from dy2st.values.number import Number
from dy2st.values.plain_objects import attributes_of
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET


def joined_at_ends(a: Any, b: Any, needed: tuple[bool, bool], arms: tuple[Subgraph, Subgraph]) -> Join:
    """The join of a variable's values at the ends of two arms."""
    joined = join(a, b, *needed)
    if isinstance(joined, Invariant) and a is b:
        made = [all(layer.tensors.get(t) is not None for t in _traced(a)) for layer in (arms[0].layer, arms[1].layer)]
        if made[0] is not made[1]:
            # The arm that jumped away has left it in the user's frame. In the other one nobody reads the variable.
            return join(a, UNSET, True, False) if made[0] else join(UNSET, b, False, True)
    return joined


def apart(joined: Join, pair: tuple[Any, Any], born: frozenset[int]) -> Join:
    """Of objects that differ by arm, one was made in an arm, with tensors of its own: nothing can stand for them."""
    if not isinstance(joined, Structured) or joined.signature[0] != TAGGED_UNION:
        return joined
    made = [case for value in pair for case in cases_of(value) if id(case) in born and open_container(case) is None]
    held = [list(case) if isinstance(case, deque) else attributes_of(case) for case in made]
    if not any(True for each in held if each for _ in _traced(each)):
        return joined
    hint = (
        "make its class a plain one, whose attributes are joined one by one, or change its attributes on that path"
        " (a deque's elements) in place of making another one"
    )
    return Incompatible.between(*pair, hint, DifferentObjectsError)


def _traced(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of the trace that a value holds."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, TaggedUnion):
            yield from _traced([tag_of(leaf), *cases_of(leaf)])
        tensor = leaf.tensor if isinstance(leaf, Number) else leaf
        if isinstance(tensor, torch.Tensor) and is_fake(tensor):
            yield tensor
