"""``D2S25x``: settings of torch and of modules that are changed on the way."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class SeedError(StagingError):
    """The random generator is seeded inside the model, or is Python's or numpy's.

    A graph has no generator to seed: it would draw other numbers in every run, where eager draws the same. Seed before
    the model is called, or draw the numbers outside and pass them in. Numbers of ``random`` and ``numpy.random`` are
    drawn while the model is traced, each run of the graph would see the same ones: draw them with ``torch.rand``.

    Before:
        import torch
        def model(x):
            torch.manual_seed(0)
            return x + torch.rand(3)

    After:
        import torch
        noise = torch.rand(3)
        def model(x):
            return x + noise
    """

    code = "D2S251"


class ModeSwitchError(StagingError):
    """A setting of torch, or a module's mode, is switched where a graph can't follow.

    ``train()``, ``eval()`` and torch's global settings under a tensor condition would hold for all that follows, on one
    path only.

    Before:
        import torch
        def model(x):
            if x.sum() > 0:
                torch.set_default_dtype(torch.float64)
            return x + torch.ones(3)

    After:
        import torch
        def model(x):
            if x.sum() > 0:
                return x + torch.ones(3, dtype=torch.float64)
            return x + torch.ones(3, dtype=torch.float64)
    """

    code = "D2S252"


class TrainingNormError(StagingError):
    """A normalisation that updates its running statistics, under a tensor condition or in a staged loop.

    In training mode batch and instance norm write to their buffers unseen by the graph. Call ``eval()`` on the module
    before it is exported, or normalise outside.

    Before:
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(3)
            def forward(self, x):
                if x.sum() > 0:
                    x = self.norm(x)
                return x
        model = Net()
        inputs = [(torch.ones(2, 3),), (-torch.ones(2, 3),)]

    After:
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.BatchNorm1d(3)
            def forward(self, x):
                if x.sum() > 0:
                    x = self.norm(x)
                return x
        model = Net().eval()
        inputs = [(torch.ones(2, 3),), (-torch.ones(2, 3),)]
    """

    code = "D2S253"
