"""A classifier that stops early when it is sure.

Small classifiers sit after each stage of a convolutional network. When one of them is confident about every image of
the batch, its answer is returned and the later, more expensive stages don't run.

Source: Teerapittayanon, McDanel, Kung, "BranchyNet: Fast Inference via Early Exiting from Deep Neural Networks", 2016.

============================  ==================
``if`` with ``return`` twice  2 nested ``If``
============================  ==================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class ConvBlock(nn.Sequential):
    """Convolution, norm, activation; halves the image."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
        )


class Exit(nn.Sequential):
    """Global average pooling and a linear classifier."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class BranchyNet(nn.Module):
    """Three stages with an exit after each; returns the logits and the number of the exit that gave them."""

    def __init__(self, classes: int = 5, threshold: float = 0.5) -> None:
        super().__init__()
        self.stage1, self.exit1 = ConvBlock(3, 8), Exit(8, classes)
        self.stage2, self.exit2 = ConvBlock(8, 16), Exit(16, classes)
        self.stage3, self.exit3 = ConvBlock(16, 32), Exit(32, classes)
        self.threshold = threshold

    def confident(self, logits: Tensor) -> Tensor:
        """Whether every image's best class has a probability above the threshold."""
        return (logits.softmax(-1).amax(-1) > self.threshold).all()

    def forward(self, image: Tensor) -> tuple[Tensor, int]:
        x = self.stage1(image)
        logits = self.exit1(x)
        if self.confident(logits):
            return logits, 1

        x = self.stage2(x)
        logits = self.exit2(x)
        if self.confident(logits):
            return logits, 2

        x = self.stage3(x)
        return self.exit3(x), 3


torch.manual_seed(0)
model = BranchyNet().eval()
dynamic_shapes = ({0: Dim("batch"), 2: Dim("height"), 3: Dim("width")},)
control_flow = {"If": 2, "Loop": 0}


def example_inputs() -> list[tuple[Tensor]]:
    """Images whose contrast decides the exit: 3, 2 and 1; several sizes."""
    generator = torch.Generator().manual_seed(1)

    def images(batch: int, height: int, width: int, contrast: float) -> tuple[Tensor]:
        return (contrast * torch.rand(batch, 3, height, width, generator=generator),)

    return [
        images(2, 16, 16, 0.1),
        images(3, 16, 24, 8.0),
        images(2, 8, 8, 30.0),
        images(3, 8, 8, 200.0),
        images(1, 12, 10, 0.5),
    ]
