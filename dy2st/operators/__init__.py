"""What rewritten code calls at run time.

Outside a capture every operator returns at once what makes the native statement behave as the original.
Inside one (``dy2st.export`` is tracing) a tensor condition *drives* the same code: see ``dy2st.operators.branch``
and ``dy2st.operators.loops``.
"""

from dy2st.operators.branch import if_, ifexp
from dy2st.operators.calls import call, function, generator, manager, muted
from dy2st.operators.jumps import Jump, block, try_
from dy2st.operators.logic import (
    and_,
    and_test,
    assertion,
    concatenated,
    equal,
    in_,
    is_,
    is_not,
    lazy_and,
    lazy_or,
    not_,
    not_equal,
    not_in,
    or_,
    or_test,
    truth,
)
from dy2st.operators.loops import each, each_inner, element, loop
from dy2st.operators.stores import (
    formatted,
    item,
    new,
    read,
    subject,
    target,
    text,
    touch,
    touch_global,
    touch_nonlocal,
    unpacked,
    visible,
)

__all__ = [
    "Jump",
    "and_",
    "and_test",
    "assertion",
    "block",
    "call",
    "concatenated",
    "each",
    "each_inner",
    "element",
    "equal",
    "formatted",
    "function",
    "generator",
    "if_",
    "ifexp",
    "in_",
    "is_",
    "is_not",
    "item",
    "lazy_and",
    "lazy_or",
    "loop",
    "manager",
    "muted",
    "new",
    "not_",
    "not_equal",
    "not_in",
    "or_",
    "or_test",
    "read",
    "subject",
    "target",
    "text",
    "touch",
    "touch_global",
    "touch_nonlocal",
    "truth",
    "try_",
    "unpacked",
    "visible",
]
