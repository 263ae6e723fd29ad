"""Zhang et al. 2020, "ResNeSt: Split-Attention Networks", radix 2, with the names of the authors' repository."""

import torch
from torch import nn
from torch.nn import functional

from models.parts import initialize


class SplitAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        inner = max(channels * 2 // 4, 32)
        self.conv = nn.Conv2d(channels, 2 * channels, 3, 1, 1, groups=2, bias=False)
        self.bn0 = nn.BatchNorm2d(2 * channels)
        self.fc1 = nn.Conv2d(channels, inner, 1)
        self.bn1 = nn.BatchNorm2d(inner)
        self.fc2 = nn.Conv2d(inner, 2 * channels, 1)

    def forward(self, x):
        versions = functional.relu(self.bn0(self.conv(x)), inplace=True).chunk(2, dim=1)
        mean = functional.adaptive_avg_pool2d(versions[0] + versions[1], 1)
        scores = self.fc2(functional.relu(self.bn1(self.fc1(mean)), inplace=True))
        shares = torch.softmax(scores.view(len(x), 2, -1), dim=1)
        return sum(version * shares[:, index, :, None, None] for index, version in enumerate(versions))


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = SplitAttention(width)
        self.avd_layer = nn.AvgPool2d(3, 2, 1) if stride == 2 else nn.Identity()
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride == 2 or inputs != 4 * width:
            pool = nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False) if stride == 2 else nn.Identity()
            self.downsample = nn.Sequential(pool, nn.Conv2d(inputs, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        path = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        path = self.bn3(self.conv3(self.avd_layer(self.conv2(path))))
        return functional.relu(path + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Resnest(nn.Module):
    def __init__(self, input_shape, classes, blocks="3,30,48,8", stem=64, width=64):
        super().__init__()
        layers = []
        for inputs, outputs, stride in ((input_shape[0], stem, 2), (stem, stem, 1)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        self.conv1 = nn.Sequential(*layers, nn.Conv2d(stem, 2 * stem, 3, 1, 1, bias=False))
        self.bn1 = nn.BatchNorm2d(2 * stem)
        inputs = 2 * stem
        for layer, count in enumerate(map(int, blocks.split(","))):
            own, parts = width << layer, []
            for index in range(count):
                parts.append(Block(inputs, own, 2 if layer > 0 and index == 0 else 1))
                inputs = 4 * own
            setattr(self, f"layer{layer + 1}", nn.Sequential(*parts))
        self.fc = nn.Linear(inputs, classes)
        initialize(self, "fan_out")

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))
