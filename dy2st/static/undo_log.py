"""What a program has written to, and what that was before: a log that is never much larger than what it undoes.

Just before a write a program notes what is written to: a row, where a row is written. Where the rows that a loop has
written to are more than there is, the tensor as a whole takes their place, and needs no more notes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

# As many elements are noted before anybody looks whether they are too many.
_FEW = 1 << 14


class UndoLog:
    """The notes of one run of a program."""

    def __init__(self) -> None:
        self._notes: list[tuple[torch.Tensor, torch.Tensor]] = []
        # By storage, all of its elements, and what they were.
        self._whole: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        # What had no history before it was written to with gradients.
        self._without_history: dict[int, torch.Tensor] = {}
        self._with_history = False
        self._count, self._bound = 0, _FEW

    def note(self, target: torch.Tensor) -> None:
        """Something will be written to a tensor."""
        if self._whole and _place(target) in self._whole:
            return
        if torch.is_grad_enabled():
            self._note_history(target)
        self._notes.append((target, copied(target)))
        self._count += target.numel()
        if self._count > self._bound:
            self._shorten()
            self._bound = max(_FEW, 2 * self._count)

    def undo(self, inputs: Sequence[object]) -> bool:
        """Put back what there was in the ``inputs`` of the program; whether all is as it was before.

        What had a history of gradients can't be put back, and is left as it is.
        """
        if self._with_history:
            return False
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        changed = []
        for each in self._without_history.values():
            beside = [one for one in tensors if each.requires_grad and _place(one) == _place(each)]
            if beside and not (len(beside) == 1 and beside[0] is each and not each._is_view()):
                return False
            changed += beside
        with torch.no_grad():
            for each, old in (*reversed(self._notes), *self._whole.values()):
                each.copy_(old)
        for each in changed:
            each.detach_()
        return True

    def _note_history(self, target: torch.Tensor) -> None:
        root = target if target._base is None else target._base
        if id(root) not in self._without_history:
            self._with_history |= root.requires_grad
            self._without_history[id(root)] = root

    def _shorten(self) -> None:
        """Where there are more notes of a storage than it has elements, keep all of these in their place."""
        by_place: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for note in self._notes:
            by_place.setdefault(_place(note[0]), []).append(note)
        for place, notes in by_place.items():
            first = notes[0][0].detach()
            size = first.untyped_storage().nbytes() // first.element_size()
            if sum(each.numel() for each, _ in notes) < size or any(each.dtype != first.dtype for each, _ in notes):
                continue
            whole = first.as_strided((size,), (1,), 0)
            before = whole.clone()
            for each, old in reversed(notes):
                before.as_strided(each.shape, each.stride(), each.storage_offset()).copy_(old)
            self._whole[place] = (whole, before)
        self._notes = [note for note in self._notes if _place(note[0]) not in self._whole]
        self._count = sum(each.numel() for each, _ in self._notes)


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """What a tensor is now."""
    return tensor.detach().clone() if torch.is_grad_enabled() else tensor.clone()


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
