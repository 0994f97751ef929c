"""The refusal of a change of a container's structure."""

from __future__ import annotations

from dy2st.errors import (
    DifferentDtypesError,
    DifferentRanksError,
    KeysChangeError,
    ListChangeError,
    Location,
    StagingError,
)
from dy2st.source.places import named
from dy2st.staging.lattice.join import Incompatible
from dy2st.values.journal import Slot


def changed(slot: Slot, lost: Incompatible, where: str, location: Location) -> StagingError:
    """The error of a container whose structure differs by path, or from one trip of a loop to the next."""
    what = f"{named(slot.owner, str(slot))} is changed {where}: {lost.reason}"
    if lost.kind in (DifferentDtypesError, DifferentRanksError, ListChangeError):
        return lost.kind(what, hint=lost.hint, location=location)
    if isinstance(slot.owner, (dict, set)):
        hint = "give it the same keys on every path, before the branch or loop"
        return KeysChangeError(what, hint=hint, location=location)
    hint = "give all elements of the list the same structure: tensors of one shape and dtype, numbers, tuples of them"
    return ListChangeError(what, hint=hint, location=location)
