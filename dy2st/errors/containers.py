"""``D2S21x``: lists, dicts and sets whose structure only the graph would know."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class ListChangeError(StagingError):
    """A list is changed under a tensor condition, or in a staged loop, in a way that can't be staged.

    A list that grows by tensors or numbers can be staged: its new elements become rows. Taking elements out on one path
    only, or appending what is no tensor, leaves a list whose structure only the graph would know.

    Before:
        def model(x):
            items = [x, x + 1]
            if x.sum() > 0:
                items.pop()
            return items[0]

    After:
        def model(x):
            items = [x, x + 1]
            count = 2
            if x.sum() > 0:
                count = 1
            return items[0] * count
    """

    code = "D2S211"


class KeysChangeError(StagingError):
    """The keys of a dict, or the members of a set, change under a tensor condition or in a staged loop.

    The values of a dict may change by path; its keys are Python's. A key that is there on some paths only can be read
    and tested, but the dict can't be used as a whole. Give every key a value before the branch or loop.

    Before:
        def model(x):
            found = {"up": x}
            if x.sum() > 0:
                found["down"] = -x
            return sum(found.values())

    After:
        import torch
        def model(x):
            found = {"up": x, "down": torch.zeros_like(x)}
            if x.sum() > 0:
                found["down"] = -x
            return sum(found.values())
    """

    code = "D2S212"


class StagedIndexError(StagingError):
    """A Python container is changed at an index or key that is known only when the graph runs.

    Which of the container's elements changes would be known only there. A tensor can be changed at such an index.

    Before:
        def model(x):
            slots = [x, -x]
            slots[int(x.sum() > 0)] = x * 2
            return slots[0]

    After:
        import torch
        def model(x):
            slots = torch.stack([x, -x])
            slots[int(x.sum() > 0)] = x * 2
            return slots[0]
    """

    code = "D2S213"


class GrownListError(StagingError):
    """A list that grew in a staged loop is used in a way that needs its length in Python.

    How many elements the loop appended is known only when the graph runs. ``torch.stack`` and ``torch.cat``, indices,
    ``len()`` and iteration in converted code work; a list as an output of the model, or given to other code, does not.

    Before:
        def model(x):
            rows = [x]
            while x.abs().sum() > 1:
                x = x / 2
                rows.append(x)
            return rows

    After:
        import torch
        def model(x):
            rows = [x]
            while x.abs().sum() > 1:
                x = x / 2
                rows.append(x)
            return torch.stack(rows)
    """

    code = "D2S214"


class UnsettledStateError(StagingError):
    """The state of a staged loop does not settle: its structure changes with every trip.

    The body is traced until what it carries from one trip to the next no longer changes its kind. That takes two or
    three runs; a window of many Python values that shift by one place in every trip takes one run for each place.

    Before:
        def model(x):
            window = [x.sum()] * 16
            while x.abs().sum() > 1:
                x = x / 2
                window = [*window[1:], x.sum()]
            return window[0]

    After:
        import torch
        def model(x):
            window = x.sum().repeat(16)
            while x.abs().sum() > 1:
                x = x / 2
                window = torch.cat([window[1:], x.sum().reshape(1)])
            return window[0]
    """

    code = "D2S215"
