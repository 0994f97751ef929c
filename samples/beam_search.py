"""Beam search in a small encoder-decoder.

The best ``beams`` hypotheses are extended by one token per step; a finished hypothesis can only repeat the end token,
at no cost. The search stops when all are finished, or when they are four tokens longer than the source. The best
hypothesis by length-normalised score is returned.

Source: Wu et al., "Google's Neural Machine Translation System", 2016, section 7 (length normalisation).

==============================================  ====================================================
``while hypotheses.shape[1] < limit``           1 ``Loop`` (the hypotheses grow and are reordered)
``if finished.all(): break``                    1 ``If``
==============================================  ====================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class BeamSearch(nn.Module):
    """Source token ids ``[length]`` to the best hypothesis and its normalised score."""

    def __init__(self, vocabulary: int = 9, width: int = 12, beams: int = 3, alpha: float = 0.6) -> None:
        super().__init__()
        self.vocabulary, self.beams, self.alpha = vocabulary, beams, alpha
        self.begin, self.end = 0, 1
        self.embedding = nn.Embedding(vocabulary, width)
        self.encode, self.cell = nn.Linear(width, width), nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(self.encode(self.embedding(source))).sum(0).expand(self.beams, -1)
        hypotheses = torch.full((self.beams, 1), self.begin)
        # All beams start equal; only the first may be extended, or they would stay equal.
        scores = torch.full((self.beams,), float("-inf"))
        scores[0] = 0.0
        finished = torch.zeros(self.beams, dtype=torch.bool)
        length = torch.zeros(self.beams)
        only_end = torch.full((self.vocabulary,), float("-inf"))
        only_end[self.end] = 0.0

        limit = source.shape[0] + 4
        # There is no one trip: after the first step only one of the three beams can have finished.
        while hypotheses.shape[1] < limit:  # dy2st: uncovered ok (1)
            h = self.cell(self.embedding(hypotheses[:, -1]), h)
            log_probs = self.out(h).log_softmax(-1)
            log_probs = torch.where(finished[:, None], only_end, log_probs)
            scores, index = (scores[:, None] + log_probs).flatten().topk(self.beams)
            parent, token = index // self.vocabulary, index % self.vocabulary
            h = h[parent]
            hypotheses = torch.cat([hypotheses[parent], token[:, None]], 1)
            length = length[parent] + ~finished[parent]
            finished = finished[parent] | (token == self.end)
            if finished.all():
                break

        normalised = scores / ((5 + length) / 6) ** self.alpha
        best = normalised.argmax()
        return hypotheses[best], normalised[best]


torch.manual_seed(1)
model = BeamSearch().eval()
with torch.no_grad():
    # Sharper than fresh weights, so that hypotheses differ, and with a way to end.
    model.out.weight.mul_(4)
    model.embedding.weight.mul_(2)
    model.out.bias[model.end] = 2.5
dynamic_shapes = ({0: Dim("length")},)
control_flow = {"If": 0, "Loop": 1}


def example_inputs() -> list[tuple[Tensor]]:
    """Sources of several lengths: searches that finish early, and some that run into the limit."""
    generator = torch.Generator().manual_seed(2)
    return [(torch.randint(2, 9, (length,), generator=generator),) for length in (4, 2, 1, 6, 9, 3, 5)]
