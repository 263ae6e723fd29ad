"""He et al. 2016 and what came of it: resnet9, resnet20, resnet18 to resnet101, wide_resnet."""

import torch
from torch import nn
from torch.nn import functional

from models.parts import initialize, is_small


class ConvBnRelu(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class Resnet9Layer(ConvBnRelu):
    def __init__(self, inputs, outputs, residual):
        super().__init__(inputs, outputs)
        self.residual = nn.Sequential(*(ConvBnRelu(outputs, outputs) for _ in range(2 if residual else 0)))

    def forward(self, x):
        x = functional.max_pool2d(super().forward(x), 2)
        return x + self.residual(x) if len(self.residual) else x


class Resnet9(nn.Module):
    """David Page's DAWNBench network, narrower."""

    def __init__(self, input_shape, classes, width=16):
        super().__init__()
        self.prep = ConvBnRelu(input_shape[0], width)
        self.layer1 = Resnet9Layer(width, 2 * width, residual=True)
        self.layer2 = Resnet9Layer(2 * width, 4 * width, residual=False)
        self.layer3 = Resnet9Layer(4 * width, 8 * width, residual=True)
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.prep(x))))
        return self.fc(functional.adaptive_max_pool2d(x, 1).flatten(1))


class Resnet20Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.missing = stride, outputs - inputs

    def forward(self, x):
        path = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)), inplace=True)))
        if self.missing or self.stride > 1:
            before = self.missing // 2
            x = functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, before, self.missing - before))
        return functional.relu(path + x, inplace=True)


class Resnet20(nn.Module):
    """He et al. 2016, section 4.2, with shortcuts of option A."""

    def __init__(self, input_shape, classes, depth=20, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks = (depth - 2) // 6
        for group in range(3):
            inputs, outputs = width << max(0, group - 1), width << group
            layer = [Resnet20Block(inputs, outputs, 1 if group == 0 else 2)]
            layer += [Resnet20Block(outputs, outputs, 1) for _ in range(blocks - 1)]
            setattr(self, f"layer{group + 1}", nn.Sequential(*layer))
        self.linear = nn.Linear(width << 2, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


class BlurPool(nn.Module):
    """Zhang 2019, as timm's BlurPool2d: binomial filter, stride 2, the image mirrored at its edges."""

    def __init__(self, channels):
        super().__init__()
        row = torch.tensor([0.25, 0.5, 0.25])
        self.register_buffer("filter", torch.outer(row, row).repeat(channels, 1, 1, 1), persistent=False)

    def forward(self, x):
        padded = functional.pad(x, (1, 1, 1, 1), mode="reflect")
        return functional.conv2d(padded, self.filter.to(x.dtype), stride=2, groups=x.shape[1])


def halving_layers(inputs, outputs, stride, blurs):
    """A 3x3 convolution, and the blur behind its norm and relu where that takes the stride."""
    blurs = blurs and stride == 2
    conv = nn.Conv2d(inputs, outputs, 3, 1 if blurs else stride, 1, bias=False)
    return conv, BlurPool(outputs) if blurs else nn.Identity()


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, downsample, blurs):
        super().__init__()
        self.conv1, self.aa = halving_layers(inputs, planes, stride, blurs)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def last_norm(self):
        return self.bn2

    def forward(self, x):
        y = self.aa(functional.relu(self.bn1(self.conv1(x)), inplace=True))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Bottleneck(nn.Module):
    """The stride is in the 3x3 convolution, as in torchvision (ResNet v1.5)."""

    expansion = 4
    factor = 1

    def __init__(self, inputs, planes, stride, downsample, blurs):
        super().__init__()
        middle = self.factor * planes
        self.conv1 = nn.Conv2d(inputs, middle, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2, self.aa = halving_layers(middle, middle, stride, blurs)
        self.bn2 = nn.BatchNorm2d(middle)
        self.conv3 = nn.Conv2d(middle, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.downsample = downsample

    def last_norm(self):
        return self.bn3

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.aa(functional.relu(self.bn2(self.conv2(y)), inplace=True))
        y = self.bn3(self.conv3(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class WideBottleneck(Bottleneck):
    factor = 2


class Resnet(nn.Module):
    """He et al. 2016, with torchvision's names. Stem "imagenet": 7x7 stride 2, max pooling; "small": 3x3.

    Stem "deep" and shortcut "average_pool" are timm's resnet50d, downsample "blur" is its resnetblur50.
    """

    def __init__(
        self,
        input_shape,
        classes,
        block,
        depths,
        stem=None,
        stem_reduction="both",
        shortcut="strided",
        downsample="strided",
        last_stride=2,
        zero_init_residual="no",
        width=64,
    ):
        super().__init__()
        self.shortcut, self.blurs = shortcut, downsample == "blur"
        self.small = stem != "deep" and is_small(stem, input_shape)
        stride = 1 if stem_reduction == "pooling" else 2
        if stem == "deep":
            half = max(1, width // 2)
            layers = []
            for inputs, step in ((input_shape[0], stride), (half, 1)):
                layers += [nn.Conv2d(inputs, half, 3, step, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True)]
            self.conv1 = nn.Sequential(*layers, nn.Conv2d(half, width, 3, 1, 1, bias=False))
        elif self.small:
            self.conv1 = nn.Conv2d(input_shape[0], width, 3, 1, 1, bias=False)
        else:
            self.conv1 = nn.Conv2d(input_shape[0], width, 7, stride, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.Identity()
        if not self.small and stem_reduction != "convolution":
            pool = nn.MaxPool2d(3, 1 if self.blurs else 2, 1)
            self.maxpool = nn.Sequential(pool, BlurPool(width)) if self.blurs else pool
        self.inputs = width
        self.layer1 = self.make_layer(block, width, depths[0], 1)
        self.layer2 = self.make_layer(block, 2 * width, depths[1], 2)
        self.layer3 = self.make_layer(block, 4 * width, depths[2], 2)
        self.layer4 = self.make_layer(block, 8 * width, depths[3], last_stride)
        self.fc = nn.Linear(8 * width * block.expansion, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if zero_init_residual == "yes" and isinstance(module, (BasicBlock, Bottleneck)):
                nn.init.zeros_(module.last_norm().weight)

    def make_shortcut(self, outputs, stride):
        convolution = nn.Conv2d(self.inputs, outputs, 1, 1 if self.shortcut == "average_pool" else stride, bias=False)
        if self.shortcut != "average_pool":
            return nn.Sequential(convolution, nn.BatchNorm2d(outputs))
        pool = nn.Identity() if stride == 1 else nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False)
        return nn.Sequential(pool, convolution, nn.BatchNorm2d(outputs))

    def make_layer(self, block, planes, depth, stride):
        blocks = []
        for index in range(depth):
            step = stride if index == 0 else 1
            outputs = planes * block.expansion
            downsample = self.make_shortcut(outputs, step) if step != 1 or self.inputs != outputs else None
            blocks.append(block(self.inputs, planes, step, downsample, self.blurs))
            self.inputs = outputs
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = self.maxpool(functional.relu(self.bn1(self.conv1(x)), inplace=True))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def resnet(block, *depths, stem="imagenet", **usual):
    def build_resnet(shape, classes, **options):
        named = {"stem": "small" if is_small(None, shape) else stem, **usual, **options}
        return Resnet(shape, classes, block, depths, **named)

    return build_resnet


class WideBlock(nn.Module):
    def __init__(self, inputs, outputs, stride, dropout):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.dropout = float(dropout)
        same = inputs == outputs and stride == 1
        self.convShortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        active = functional.relu(self.bn1(x), inplace=True)
        y = functional.relu(self.bn2(self.conv1(active)), inplace=True)
        y = self.conv2(functional.dropout(y, self.dropout, self.training))
        return y + (x if self.convShortcut is None else self.convShortcut(active))


class WideGroup(nn.Module):
    def __init__(self, inputs, outputs, blocks, stride, dropout):
        super().__init__()
        self.layer = nn.Sequential(
            *(
                WideBlock(outputs if index else inputs, outputs, 1 if index else stride, dropout)
                for index in range(blocks)
            )
        )

    def forward(self, x):
        return self.layer(x)


class WideResnet(nn.Module):
    """Zagoruyko and Komodakis 2016, WRN-depth-width for small images."""

    def __init__(self, input_shape, classes, depth=28, width=10, dropout=0):
        super().__init__()
        blocks = (depth - 4) // 6
        self.conv1 = nn.Conv2d(input_shape[0], 16, 3, 1, 1, bias=False)
        self.block1 = WideGroup(16, 16 * width, blocks, 1, dropout)
        self.block2 = WideGroup(16 * width, 32 * width, blocks, 2, dropout)
        self.block3 = WideGroup(32 * width, 64 * width, blocks, 2, dropout)
        self.bn1 = nn.BatchNorm2d(64 * width)
        self.fc = nn.Linear(64 * width, classes)
        initialize(self, "fan_out")

    def forward(self, x):
        x = functional.relu(self.bn1(self.block3(self.block2(self.block1(self.conv1(x))))), inplace=True)
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))
