"""The rows that a loop stacks to be written into a tensor after it, as it is in ``out[i] = h``, written where they go.

For a graph all rows are stacked, put between what else there is of the tensor, and copied into it. Where a program
runs as Python it copies them, small ones at once after the loop, and large ones one by one: in the loop, if nobody but
the program has the tensor. With gradients they are stacked, which autograd follows in one step.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from dy2st.tracing.graph_ops import loop_op
from dy2st.tracing.row_writes import ROWS
from dy2st.tracing.size_ops import sized_op

ATEN = torch.ops.aten
# Rows of fewer elements are stacked: one call for all of them costs less.
_FEW = 1 << 12
_BETWEEN = (ATEN.cat.default, ATEN.slice.Tensor, ATEN.movedim.int, ATEN.sym_size.int, sized_op)


@dataclass(frozen=True)
class WrittenRows:
    """Where the rows of a loop go; ``between`` are the nodes that stack them and lead to the ``write``."""

    rows: fx.Node
    write: fx.Node
    between: frozenset[fx.Node]

    @property
    def base(self) -> fx.Node:
        """What they are written into."""
        return self.write.args[0]  # type: ignore[return-value]

    @property
    def place(self) -> tuple[int, int]:
        """The dimension along which they are stacked, and at which number they begin."""
        found: tuple[int, int] = self.write.meta[ROWS]
        return found


def written_rows(graph: fx.Graph) -> dict[tuple[fx.Node, int], WrittenRows]:
    """By loop and number of the result, the rows of a graph's loops that do nothing but to be written."""
    found = {}
    for node in graph.nodes:
        if ROWS not in node.meta:
            continue
        made = _followed(node)
        if made is not None:
            loop, number = made.rows.args
            found[loop, number] = made
    return found  # type: ignore[return-value]


def _followed(write: fx.Node) -> WrittenRows | None:
    """What leads to a write, if it leads nowhere else."""
    base = write.args[0]
    between: dict[fx.Node, None] = {}
    rows: fx.Node | None = None
    waiting: list[Any] = [write.args[1]]
    while waiting:
        node = waiting.pop()
        if node in between or node is base:
            continue
        if node.target is operator.getitem and getattr(node.args[0], "target", None) is loop_op:
            rows = node if rows is None else rows
        elif node.target not in _BETWEEN:
            if isinstance(node.meta.get("val"), torch.Tensor):
                return None
            continue  # a size
        else:
            waiting += node.all_input_nodes
        between[node] = None
    users = {user for node in between for user in node.users if not _only_asserts(user)}
    if rows is None or sum(node.target is operator.getitem for node in between) > 1 or users - {*between, write}:
        return None
    same = [user for user in rows.args[0].users if user.args[1] == rows.args[1]]  # type: ignore[union-attr]
    return WrittenRows(rows, write, frozenset(between)) if len(same) == 1 else None


def _only_asserts(node: fx.Node) -> bool:
    """Whether a node asserts that a size is not negative: it is the number of rows."""
    return node.target is operator.ge and all(user.target is ATEN._assert_scalar.default for user in node.users)


class RowWriter:
    """The rows of one run of a loop, and the tensor into which they go."""

    def __init__(self, base: torch.Tensor, dim: int, start: int, *, own: bool) -> None:
        """``own``: nobody else has the tensor, so that rows may be written before it is known whether all fit."""
        self._base, self._dim, self._start = base, dim, start
        self._own = own
        self._rows: list[torch.Tensor] = []
        self._written = 0

    def append(self, row: torch.Tensor) -> None:
        """One more row.

        Raises:
            IndexError: there is no place for it.
        """
        if self._own and not self._rows and row.numel() >= _FEW and not self._follows(row):
            self._base.select(self._dim, self._start + self._written).copy_(row)
            self._written += 1
        else:
            self._rows.append(row)

    def target(self) -> torch.Tensor:
        """What will be written to.

        Raises:
            IndexError: there is less of it than there are rows.
        """
        first, count = self._start + self._written, len(self._rows)
        if count and first + count > self._base.size(self._dim):
            raise IndexError(f"index {self._base.size(self._dim)} is out of bounds for dimension {self._dim}")
        return self._base.narrow(self._dim, first if count else 0, count)

    def finish(self) -> None:
        """Write what has not been written yet."""
        if not self._rows:
            return
        target = self.target()
        if self._rows[0].numel() < _FEW or any(map(self._follows, self._rows)):
            target.copy_(torch.stack(self._rows, self._dim))
        else:
            for row, place in zip(self._rows, target.unbind(self._dim), strict=True):
                place.copy_(row)

    def _follows(self, row: torch.Tensor) -> bool:
        """Whether autograd follows a write of a row."""
        return torch.is_grad_enabled() and (row.requires_grad or self._base.requires_grad)
