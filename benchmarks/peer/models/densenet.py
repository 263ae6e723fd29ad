"""densenet121."""

import torch
from torch import nn
from torch.nn import functional

from models.parts import initialize, is_small


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(functional.relu(self.norm1(x), inplace=True))
        y = self.conv2(functional.relu(self.norm2(y), inplace=True))
        return torch.cat([x, y], 1)


class Transition(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, inputs // 2, 1, bias=False)

    def forward(self, x):
        return functional.avg_pool2d(self.conv(functional.relu(self.norm(x), inplace=True)), 2)


class Densenet(nn.Module):
    """Huang et al. 2017, with torchvision's names."""

    def __init__(self, input_shape, classes, growth=32, blocks="6,12,24,16", stem=None):
        super().__init__()
        self.small = is_small(stem, input_shape)
        kernel, stride, padding = (3, 1, 1) if self.small else (7, 2, 3)
        channels = 2 * growth
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(input_shape[0], channels, kernel, stride, padding, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(channels))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        if not self.small:
            self.features.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        depths = [int(depth) for depth in str(blocks).split(",")]
        for number, depth in enumerate(depths, 1):
            block = nn.Sequential()
            for layer in range(1, depth + 1):
                block.add_module(f"denselayer{layer}", DenseLayer(channels, growth))
                channels += growth
            self.features.add_module(f"denseblock{number}", block)
            if number < len(depths):
                self.features.add_module(f"transition{number}", Transition(channels))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)
        initialize(self, "fan_in")

    def forward(self, x):
        x = functional.relu(self.features(x), inplace=True)
        return self.classifier(functional.adaptive_avg_pool2d(x, 1).flatten(1))
