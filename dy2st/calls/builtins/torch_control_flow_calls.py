"""``torch.cond`` and ``torch.while_loop`` of the user's code, converted as the Python that they stand for."""

from __future__ import annotations

import types
from typing import Any

import torch

from dy2st.calls.builtins.overloads import knows_cases, stands_for
from dy2st.operators.torch_forms import FORMS
from dy2st.source.rewriting import rewrite


def _register(function: Any, form: types.FunctionType) -> None:
    @stands_for(function)
    @knows_cases
    def converted(*args: Any, **kwargs: Any) -> Any:
        return rewrite(form)(*args, **kwargs)


for _name, _form in FORMS.items():
    _register(getattr(torch, _name), _form)
