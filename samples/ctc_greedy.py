"""Greedy decoding of a network trained with connectionist temporal classification.

The best symbol of each frame; repeats are merged and blanks are dropped. The length of the result depends on the
values.

Source: Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent Neural
Networks", 2006, section 3.2 (best path decoding).

=======================  ===============================================
``for symbol in best``   1 ``Loop`` over rows (carries a growing tensor)
``if`` with continue     1 ``If``
``if`` it is no blank    1 ``If`` in it
=======================  ===============================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class CTCGreedyDecoder(nn.Module):
    """Acoustic features ``[frames, features]`` to labels and the log probability of the best path."""

    def __init__(self, features: int = 6, symbols: int = 5, blank: int = 0) -> None:
        super().__init__()
        self.classify = nn.Linear(features, symbols)
        self.blank = blank

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = self.classify(features).log_softmax(-1)
        score, best = log_probs.max(-1)
        labels = best.new_empty(0)
        previous = self.blank
        for symbol in best:
            repeated = symbol == previous
            previous = symbol
            if repeated:
                continue
            if symbol != self.blank:
                labels = torch.cat([labels, symbol.reshape(1)])
        return labels, score.sum()


torch.manual_seed(0)
model = CTCGreedyDecoder().eval()
with torch.no_grad():
    # Feature k speaks for symbol k, the last one for nothing.
    model.classify.weight.copy_(0.1 * model.classify.weight + 4 * torch.eye(5, 6))
dynamic_shapes = ({0: Dim("frames")},)
control_flow = {"If": 2, "Loop": 1}


def example_inputs() -> list[tuple[Tensor]]:
    """Frames of known symbols with a little noise: repeats, blanks between repeats, only blanks, one frame, none."""
    generator = torch.Generator().manual_seed(1)

    def frames(*symbols: int) -> tuple[Tensor]:
        one_hot = nn.functional.one_hot(torch.tensor(symbols, dtype=torch.long), 6).float()
        return (one_hot + 0.1 * torch.randn(len(symbols), 6, generator=generator),)

    return [
        frames(1, 1, 0, 1, 2, 2, 0, 0, 3),
        frames(0, 0, 0),
        frames(4, 3, 2, 1),
        frames(2, 2, 2, 2, 2),
        frames(3),
        frames(0),
        frames(),
    ]
