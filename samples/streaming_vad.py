"""A voice activity detector on a stream: one frame of sound for each call, and what it knows of the frames before.

A frame is speech where its energy is well above the noise floor, which follows the quiet frames. After speech the
decision is held for some frames, so that the end of a word is not cut off. The noise floor is a buffer, the number of
frames to hold a Python int: both are inputs and outputs of the file, and ``dy2st.onnx.Runner`` carries them on.

Source: ETSI TS 126 094, "AMR speech codec; voice activity detector", 1999: background noise estimate and hangover.

====================================================  ======
``if`` on a level, in it one on a counter             2 ``If``
====================================================  ======
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StreamingVad(nn.Module):
    """Gives the level above the noise floor in dB, and whether there is speech."""

    noise: Tensor

    def __init__(self, threshold: float = 9.0, hangover: int = 2, smoothing: float = 0.8) -> None:
        super().__init__()
        self.register_buffer("noise", torch.tensor(1e-4))
        self.threshold, self.hangover, self.smoothing = threshold, hangover, smoothing
        self.held = 0

    def forward(self, frame: Tensor) -> tuple[Tensor, Tensor]:
        energy = frame.square().mean() + 1e-8
        level = 10 * torch.log10(energy / self.noise)
        speech = torch.ones((), dtype=torch.bool)
        if level > self.threshold:
            self.held = self.hangover
        else:
            self.noise = self.smoothing * self.noise + (1 - self.smoothing) * energy
            if self.held > 0:
                self.held -= 1
            else:
                speech = torch.zeros((), dtype=torch.bool)
        return level, speech


torch.manual_seed(0)
model = StreamingVad().eval()
dynamic_shapes = ({},)
control_flow = {"If": 2, "Loop": 0}


def example_inputs() -> list[list[tuple[Tensor]]]:
    """Two streams: silence, a word and its echo, silence; and noise that rises slowly, which is none."""
    generator = torch.Generator().manual_seed(1)

    def stream(*loudness: float) -> list[tuple[Tensor]]:
        return [(level * torch.randn(160, generator=generator),) for level in loudness]

    return [stream(0.01, 0.01, 0.5, 0.4, 0.01, 0.01, 0.01, 0.01), stream(0.01, 0.015, 0.02, 0.025)]
