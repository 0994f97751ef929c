"""``D2S21x``: lists, dicts and sets whose structure would be data-dependent."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class ListChangeError(StagingError):
    """A list changes its length under a tensor condition, or in a staged loop, and its elements are unlike.

    The elements of a list of data-dependent length become rows of tensors. So they must have one structure:
    tensors of one shape and dtype, or tuples, dicts and dataclasses of such with equal names. What has no sizes may
    differ: numbers of several types, tensors without dimensions, texts and None.

    Before:
        def model(x):
            parts = []
            for row in x:
                if row.sum() > 0:
                    parts.append((row, "positive"))
                else:
                    parts.append((row, "negative"))
                    parts.append((-row, "flipped", 1))
            return parts[-1][0]

    After:
        def model(x):
            parts = []
            for row in x:
                if row.sum() > 0:
                    parts.append((row, "positive", 0))
                else:
                    parts.append((row, "negative", 0))
                    parts.append((-row, "flipped", 1))
            return parts[-1][0]
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
    """A dict or another Python container is changed at a key that is known only when the graph runs.

    Which of the container's elements changes would be known only there. Lists and tensors can be changed at such an
    index, and dicts that the model makes have ints among their keys. Floats are none: NaN is found again only as the
    same object.

    Before:
        def model(x):
            slots = {0.0: x, 1.0: -x}
            slots[float(x.sum() > 0)] = x * 2
            return slots[0.0]

    After:
        def model(x):
            slots = [x, -x]
            slots[int(x.sum() > 0)] = x * 2
            return slots[0]
    """

    code = "D2S213"


class GrownListError(StagingError):
    """A list that grew in a staged loop is used in a way that needs its length in Python.

    How many elements the loop appended is known only when the graph runs. ``torch.stack`` and ``torch.cat``, indices,
    ``len()`` and iteration in converted code work, and so does a list that the model returns; a list that is given to
    other code does not.

    Before:
        import torch
        def model(x):
            rows = [x]
            while x.abs().sum() > 1:
                x = x / 2
                rows.append(x)
            return torch.broadcast_tensors(*rows)[0]

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
