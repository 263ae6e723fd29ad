"""Layers one behind the other: mlp, lenet5, alexnet, vgg16."""

import math

from torch import nn
from torch.nn import functional

from models.parts import initialize, is_small


class Mlp(nn.Module):
    def __init__(self, input_shape, classes):
        super().__init__()
        self.fc1 = nn.Linear(math.prod(input_shape), 512)
        self.fc2 = nn.Linear(512, 256)
        self.fc3 = nn.Linear(256, classes)

    def forward(self, x):
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Lenet5(nn.Module):
    """LeCun et al. 1998 with relu and max pooling; 28x28 images are padded to 32x32."""

    def __init__(self, input_shape, classes):
        super().__init__()
        channels, height, width = input_shape
        padding = 2 if height < 32 else 0
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=padding)
        self.conv2 = nn.Conv2d(6, 16, 5)

        def after_pools(size):
            return ((size + 2 * padding - 4) // 2 - 4) // 2

        self.fc1 = nn.Linear(16 * after_pools(height) * after_pools(width), 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Alexnet(nn.Module):
    """Krizhevsky 2014, as in torchvision."""

    def __init__(self, input_shape, classes, dropout=0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(input_shape[0], 64, 11, 4, 2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(float(dropout)),
            nn.Linear(256 * 36, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(float(dropout)),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, classes),
        )

    def forward(self, x):
        return self.classifier(functional.adaptive_avg_pool2d(self.features(x), 6).flatten(1))


class Vgg16(nn.Module):
    """Simonyan and Zisserman 2015, configuration D, as in torchvision; head "small" is a single layer."""

    def __init__(self, input_shape, classes, norm="none", head=None, dropout=0.5):
        super().__init__()
        layers, inputs = [], input_shape[0]
        for convolutions, channels in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
            for _ in range(convolutions):
                layers.append(nn.Conv2d(inputs, channels, 3, padding=1))
                layers += [nn.BatchNorm2d(channels)] if norm == "batch" else []
                layers.append(nn.ReLU(inplace=True))
                inputs = channels
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.small = is_small(head, input_shape)
        if self.small:
            self.classifier = nn.Linear(512, classes)
        else:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 49, 4096),
                nn.ReLU(inplace=True),
                nn.Dropout(float(dropout)),
                nn.Linear(4096, 4096),
                nn.ReLU(inplace=True),
                nn.Dropout(float(dropout)),
                nn.Linear(4096, classes),
            )
        initialize(self, "fan_out", linear_deviation=0.01)

    def forward(self, x):
        x = functional.adaptive_avg_pool2d(self.features(x), 1 if self.small else 7)
        return self.classifier(x.flatten(1))
