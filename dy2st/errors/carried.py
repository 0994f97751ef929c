"""``D2S26x``: what lives on from one call of a model to the next."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class CarriedStateError(StagingError):
    """What a model changes in each call, and reads in the next, can't be an input and an output of a file.

    A file keeps nothing between two calls: what lives on in eager mode (a buffer, a tensor or number in an attribute, a
    tuple or list of fixed length of them) is one more input of the file, and its new value one more output. A list that
    grows with each call, new keys, text, objects that are replaced, and a value whose dtype or rank changes have no
    such form. ``state="forget"`` exports a file that starts afresh in each call. ``state="refuse"`` raises this for
    all state.

    Before:
        import dy2st, torch
        class Mean(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.seen = []
            def forward(self, x):
                self.seen.append(x.mean())
                return sum(self.seen) / len(self.seen)
        dy2st.onnx.export(Mean(), (torch.ones(3),))

    After:
        import dy2st, torch
        class Mean(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.total = torch.zeros(())
                self.count = 0
            def forward(self, x):
                self.total = self.total + x.mean()
                self.count += 1
                return self.total / self.count
        dy2st.onnx.export(Mean(), (torch.ones(3),))
    """

    code = "D2S261"
