"""``D2S24x``: Python asks for a data-dependent value."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class StagedNumberError(StagingError):
    """A number that is known only when the graph runs is used where Python needs its value.

    Arithmetic, comparisons, torch functions, sizes, indices of tensors, lists and modules work, and ints as keys of
    dicts and members of sets that the model makes. A float as a key, an argument of code that dy2st does not convert,
    or the characters of a text need the number itself.

    Before:
        def model(x):
            seen = set()
            for value in x:
                seen.add(float(value))
            return x * len(seen)

    After:
        def model(x):
            return x * x.unique().numel()
    """

    code = "D2S241"


class DynamicLengthError(StagingError):
    """Python needs the length of something that is known only when the graph runs.

    Converted code iterates over tensors and ranges of any length, and makes lists of them. Code that dy2st does not
    convert would need that many Python objects.

    Before:
        import dy2st
        @dy2st.not_to_static
        def total(numbers):
            return sum(numbers)
        def model(x):
            return x * total(range(int(x.abs().sum())))

    After:
        def total(numbers):
            found = 0
            for number in numbers:
                found += number
            return found
        def model(x):
            return x * total(range(int(x.abs().sum())))
    """

    code = "D2S242"


class ConditionShapeError(StagingError):
    """A tensor with more than one element is used as a condition.

    Eager PyTorch refuses it too, where it gets there: say whether any or all of the elements count.

    Before:
        def model(x):
            if x.sum() > 100:
                if x > 0:
                    x = x * 2
            return x

    After:
        def model(x):
            if x.sum() > 100:
                if (x > 0).all():
                    x = x * 2
            return x
    """

    code = "D2S243"


class UnconvertedConditionError(StagingError):
    """Code that dy2st does not convert uses a tensor's value as a condition, or as a size.

    Marked with ``not_to_static``, without source, a part of torch itself: such code runs as plain Python while it is
    traced, where tensors have no values.

    Before:
        import dy2st
        @dy2st.not_to_static
        def relu(x):
            return x if x.sum() > 0 else x * 0
        def model(x):
            return relu(x)

    After:
        def relu(x):
            return x if x.sum() > 0 else x * 0
        def model(x):
            return relu(x)
    """

    code = "D2S244"


class NumpyError(StagingError):
    """numpy is used on a tensor that the graph computes.

    numpy computes at once, with values that do not exist before the graph runs. A tensor that is computed of constants
    alone has values, so that numpy may have those; a static function takes no tensor of the world around for one.

    Before:
        import numpy
        import torch
        def model(x):
            return torch.from_numpy(numpy.sin(x.numpy()))

    After:
        import torch
        def model(x):
            return torch.sin(x)
    """

    code = "D2S245"
