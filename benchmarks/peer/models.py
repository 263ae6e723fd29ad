"""weft's models in PyTorch, with the same arithmetic and the same parameter names. PyTorch 1.13, no torchvision."""

import math

import torch
from torch import nn
from torch.nn import functional


def is_small(choice, input_shape):
    """Whether a stem or head is the one for small images: as chosen, or by the size."""
    if choice not in (None, "imagenet", "small"):
        raise ValueError(f"'{choice}' is not known; give imagenet or small")
    return choice == "small" if choice else max(input_shape[1:]) < 64


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


def initialize(model, mode, linear_deviation=None):
    """Normal weights of convolutions (He et al. 2015), biases of zero; fully connected weights normal, or PyTorch's."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
        elif isinstance(module, nn.Linear) and linear_deviation is not None:
            nn.init.normal_(module.weight, std=linear_deviation)
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.zeros_(module.bias)


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


def conv_norm_relu6(inputs, outputs, kernel=1, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expansion):
        super().__init__()
        wide = inputs * expansion
        self.conv = nn.Sequential(
            *([] if expansion == 1 else [conv_norm_relu6(inputs, wide)]),
            conv_norm_relu6(wide, wide, 3, stride, wide),
            nn.Conv2d(wide, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.residual else self.conv(x)


class MobilenetV2(nn.Module):
    """Sandler et al. 2018, as in torchvision. Stem "small": three halvings of the image instead of five."""

    def __init__(self, input_shape, classes, width=1, dropout=0.2, stem=None):
        super().__init__()
        width, small = float(width), is_small(stem, input_shape)

        def scaled(channels):
            rounded = max(8, int(channels * width + 4) // 8 * 8)
            return rounded + 8 if rounded < 0.9 * channels * width else rounded

        inputs = scaled(32)
        features = [conv_norm_relu6(input_shape[0], inputs, 3, 1 if small else 2)]
        for expansion, channels, blocks, stride in (
            (1, 16, 1, 1),
            (6, 24, 2, 1 if small else 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ):
            for index in range(blocks):
                features.append(InvertedResidual(inputs, scaled(channels), 1 if index else stride, expansion))
                inputs = scaled(channels)
        last = int(1280 * max(1.0, width) + 4) // 8 * 8
        self.features = nn.Sequential(*features, conv_norm_relu6(inputs, last))
        self.classifier = nn.Sequential(nn.Dropout(float(dropout)), nn.Linear(last, classes))
        initialize(self, "fan_out", linear_deviation=0.01)

    def forward(self, x):
        return self.classifier(functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        if mask is not None:
            scores = scores.masked_fill(mask, -1e30)
        y = scores.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width)

    def forward(self, x, mask):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.mlp(self.ln2(x))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, channels, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class VitTiny(nn.Module):
    """DeiT-Ti (Touvron et al. 2021), with timm's names."""

    no_weight_decay = ("cls_token", "pos_embed")

    def __init__(self, input_shape, classes, patch=None, layers=12, heads=3, width=192):
        super().__init__()
        channels, rows, columns = input_shape
        patch = patch or (4 if max(rows, columns) < 64 else 16)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (rows // patch) * (columns // patch), width))
        self.patch_embed = PatchEmbed(channels, width, patch)
        self.blocks = nn.Sequential(*(VitBlock(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch_embed(x)], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, 2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, x, skip):
        x = self.up(x)
        rows, columns = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = functional.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return self.conv(torch.cat([skip, x], 1))


class UnetSmall(nn.Module):
    """Ronneberger et al. 2015 with batch norm and padding. Images to a class per pixel: [N*H*W,classes]."""

    labels_per_pixel = True

    def __init__(self, input_shape, classes, width=16, depth=4):
        super().__init__()
        self.depth = depth
        self.inc = DoubleConv(input_shape[0], width)
        for level in range(1, depth + 1):
            self.add_module(f"down{level}", Down(width << (level - 1), width << level))
        for level in range(1, depth + 1):
            self.add_module(f"up{level}", Up(width << (depth - level + 1), width << (depth - level)))
        self.outc = nn.Sequential()
        self.outc.add_module("conv", nn.Conv2d(width, classes, 1))

    def forward(self, x):
        skips = [self.inc(x)]
        for level in range(1, self.depth + 1):
            skips.append(getattr(self, f"down{level}")(skips[-1]))
        x = skips.pop()
        for level in range(1, self.depth + 1):
            x = getattr(self, f"up{level}")(x, skips.pop())
        return self.outc(x).permute(0, 2, 3, 1).flatten(0, 2)


class Autoencoder(nn.Module):
    """Three strided convolutions, a code, three transposed convolutions; it predicts its input: [N,C*H*W]."""

    predicts_input = True

    def __init__(self, input_shape, classes, code=64, widths="32,64,128"):
        super().__init__()
        channels, rows, columns = input_shape
        shapes, encoder, decoder = [], [], []
        for width in (int(w) for w in str(widths).split(",")):
            shapes.append((channels, rows, columns))
            encoder += [nn.Conv2d(channels, width, 3, 2, 1), nn.ReLU(inplace=True)]
            channels, rows, columns = width, (rows + 1) // 2, (columns + 1) // 2
        self.deepest = (channels, rows, columns)
        self.encoder = nn.Sequential(*encoder)
        self.code = nn.Linear(channels * rows * columns, code)
        self.expand = nn.Linear(code, channels * rows * columns)
        for outputs, height, width in reversed(shapes):
            padding = ((height + 1) % 2, (width + 1) % 2)
            decoder += [nn.ConvTranspose2d(channels, outputs, 3, 2, 1, padding), nn.ReLU(inplace=True)]
            channels = outputs
        self.decoder = nn.Sequential(*decoder[:-1])

    def forward(self, x):
        x = functional.relu(self.expand(self.code(self.encoder(x).flatten(1))))
        return self.decoder(x.view(-1, *self.deepest)).flatten(1)


PRESETS = {"tiny": (4, 4, 128), "small": (6, 6, 384), "base": (12, 12, 768)}


class TransformerLm(nn.Module):
    """GPT-2's shape: pre-norm, learned positions, causal. Tokens [N,T] to logits [N*T,classes]."""

    def __init__(self, input_shape, classes, preset="tiny", layers=None, heads=None, width=None):
        super().__init__()
        layers, heads, width = (given or usual for given, usual in zip((layers, heads, width), PRESETS[preset]))
        context = input_shape[0]
        self.tok_emb = nn.Embedding(classes, width)
        self.pos_emb = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes, bias=False)
        self.register_buffer("mask", torch.ones(context, context).triu(1).bool(), persistent=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.tok_emb(tokens) + self.pos_emb.weight[:length]
        for block in self.blocks:
            x = block(x, self.mask[:length, :length])
        return self.head(self.ln_f(x)).flatten(0, 1)


class LstmClassifier(nn.Module):
    """The last hidden states of nn.LSTM or nn.GRU over tokens, or over the rows of images."""

    labels_per_sequence = True  # one, not one per token

    def __init__(
        self, input_shape, classes, cell="lstm", layers=1, width=128, bidirectional="no", dropout=0, vocabulary=256
    ):
        super().__init__()
        layer = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        both = bidirectional == "yes"
        self.directions = 2 if both else 1
        if len(input_shape) == 1:
            self.embedding = nn.Embedding(vocabulary, width)
        features = width if len(input_shape) == 1 else input_shape[0] * input_shape[2]
        self.rnn = layer(features, width, layers, bidirectional=both, dropout=float(dropout))
        self.dropout = nn.Dropout(float(dropout))
        self.fc = nn.Linear(self.directions * width, classes)

    def forward(self, x):
        steps = self.embedding(x.t()) if x.ndim == 2 else x.permute(2, 0, 1, 3).flatten(2)
        hidden = self.rnn(steps)[1]
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return self.fc(self.dropout(torch.cat(list(hidden[-self.directions :]), 1)))


class Seq2seqAttention(nn.Module):
    """Encoder, decoder and Luong's general attention. Tokens [N,T]: the source, then the translation so far."""

    def __init__(self, input_shape, classes, source=None, width=128, layers=1, padding=0):
        super().__init__()
        self.source = source or input_shape[0] // 2
        self.target = input_shape[0] - self.source
        self.padding = padding
        self.embedding = nn.Embedding(classes, width)
        self.encoder = nn.LSTM(width, width, layers, bidirectional=True)
        self.bridge_hidden = nn.Linear(2 * width, width)
        self.bridge_cell = nn.Linear(2 * width, width)
        self.decoder = nn.LSTM(width, width, layers)
        self.attention = nn.Module()
        self.attention.keys = nn.Linear(2 * width, width, bias=False)
        self.attention.out = nn.Linear(3 * width, width, bias=False)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        source, target = tokens[:, : self.source], tokens[:, self.source :]
        steps, states = self.encoder(self.embedding(source.t()))
        hidden, cell = (torch.cat([state[-2], state[-1]], 1) for state in states)
        first = torch.tanh(self.bridge_hidden(hidden)), self.bridge_cell(cell)
        first = [state.expand(self.decoder.num_layers, *state.shape).contiguous() for state in first]
        queries, _ = self.decoder(self.embedding(target.t()), first)
        queries, steps = queries.transpose(0, 1), steps.transpose(0, 1)
        scores = queries @ self.attention.keys(steps).transpose(1, 2)
        scores = scores.masked_fill((source == self.padding)[:, None], -1e30)
        both = torch.cat([scores.softmax(-1) @ steps, queries], 2)
        return self.head(torch.tanh(self.attention.out(both))).flatten(0, 1)


class Crnn(nn.Module):
    """Shi, Bai and Yao 2015. Images to logits [T,N,classes]; class 0 is the blank and ends the labels of short texts."""

    def __init__(self, input_shape, classes, width=64, layers=2, rnn_width=256, length=16):
        super().__init__()
        self.text_length = length
        self.cnn = nn.Module()
        inputs = input_shape[0]
        for index, factor in enumerate((1, 2, 4, 4, 8, 8, 8)):
            kernel, padding = (2, 0) if index == 6 else (3, 1)
            self.cnn.add_module(f"conv{index}", nn.Conv2d(inputs, factor * width, kernel, padding=padding))
            inputs = factor * width
            if index in (2, 4, 6):
                self.cnn.add_module(f"batchnorm{index}", nn.BatchNorm2d(inputs))
        self.rnn = nn.LSTM(inputs * (input_shape[1] // 16 - 1), rnn_width, layers, bidirectional=True)
        self.fc = nn.Linear(2 * rnn_width, classes)

    def forward(self, x):
        pools = {0: 2, 1: 2, 3: (2, 1), 5: (2, 1)}
        for index in range(7):
            x = getattr(self.cnn, f"conv{index}")(x)
            if index in (2, 4, 6):
                x = getattr(self.cnn, f"batchnorm{index}")(x)
            x = functional.relu(x, inplace=True)
            if index in pools:
                x = functional.max_pool2d(x, pools[index])
        return self.fc(self.rnn(x.permute(3, 0, 1, 2).flatten(2))[0])


class ShiftNorm(nn.Module):
    """Batch norm that shifts but does not scale; `momentum` is the share of the new batch."""

    def __init__(self, channels, momentum=0.4, epsilon=1e-12):
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("ones", torch.ones(channels), persistent=False)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x):
        statistics = self.running_mean, self.running_var
        return functional.batch_norm(x, *statistics, self.ones, self.bias, self.training, self.momentum, self.epsilon)


class Airbench94Group(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm1 = ShiftNorm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = ShiftNorm(outputs)
        for conv in (self.conv1, self.conv2):
            nn.init.dirac_(conv.weight.data[: conv.in_channels])

    def forward(self, x):
        x = functional.gelu(self.norm1(functional.max_pool2d(self.conv1(x), 2)))
        return functional.gelu(self.norm2(self.conv2(x)))


class Airbench94(nn.Module):
    """Jordan 2024, section 3. `whiten` starts as PyTorch starts it: see whiten_from."""

    def __init__(self, input_shape, classes, width=64):
        super().__init__()
        self.whiten = nn.Conv2d(input_shape[0], 8 * input_shape[0], 2)
        nn.init.zeros_(self.whiten.bias)
        self.group1 = Airbench94Group(8 * input_shape[0], width)
        self.group2 = Airbench94Group(width, 4 * width)
        self.group3 = Airbench94Group(4 * width, 4 * width)
        self.head = nn.Linear(4 * width, classes, bias=False)

    def whiten_from(self, images, epsilon=5e-4):
        """Filters from the eigenvectors of the second moments of the patches of normalised images [N,C,H,W]."""
        shape = self.whiten.weight.shape[1:]
        patches = images.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, shape.numel())
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        filters = (vectors / (values + epsilon).sqrt()).T.flip(0).reshape(-1, *shape)
        self.whiten.weight.data = torch.cat([filters, -filters])

    def forward(self, x):
        x = self.group3(self.group2(self.group1(functional.gelu(self.whiten(x)))))
        return self.head(functional.max_pool2d(x, x.shape[2:]).flatten(1)) / 9


def resnet(block, *depths, stem="imagenet", **usual):
    def build_resnet(shape, classes, **options):
        named = {"stem": "small" if is_small(None, shape) else stem, **usual, **options}
        return Resnet(shape, classes, block, depths, **named)

    return build_resnet


MODELS = {
    "mlp": Mlp,
    "lenet5": Lenet5,
    "alexnet": Alexnet,
    "vgg16": Vgg16,
    "resnet9": Resnet9,
    "resnet18": resnet(BasicBlock, 2, 2, 2, 2),
    "resnet34": resnet(BasicBlock, 3, 4, 6, 3),
    "resnet50": resnet(Bottleneck, 3, 4, 6, 3),
    "resnet50_128": resnet(Bottleneck, 3, 4, 6, 3, stem="deep", shortcut="average_pool"),
    "resnet101": resnet(Bottleneck, 3, 4, 23, 3),
    "wide_resnet": WideResnet,
    "wide_resnet50_2": resnet(WideBottleneck, 3, 4, 6, 3),
    "densenet121": Densenet,
    "mobilenet_v2": MobilenetV2,
    "vit_tiny": VitTiny,
    "unet_small": UnetSmall,
    "autoencoder": Autoencoder,
    "lstm_classifier": LstmClassifier,
    "seq2seq_attention": Seq2seqAttention,
    "crnn": Crnn,
    "transformer_lm": TransformerLm,
    "airbench94": Airbench94,
}


def build(name, input_shape, classes, **options):
    """The model for inputs of this shape per sample: (C,H,W), or (T,) for token sequences."""
    return MODELS[name](tuple(input_shape), classes, **options)


def label_count(model, shape):
    """How many labels a sample has."""
    if hasattr(model, "text_length"):
        return model.text_length
    if len(shape) == 1:
        return 1 if getattr(model, "labels_per_sequence", False) else getattr(model, "target", shape[0])
    return shape[1] * shape[2] if getattr(model, "labels_per_pixel", False) else 1


def loss_of(model, x, labels):
    """The mean cross-entropy; squared error where the model predicts its input; where it reads text, CTC."""
    if hasattr(model, "text_length"):
        texts = labels.view(len(x), -1)
        logits = model(x)
        steps = torch.full((len(x),), len(logits), dtype=torch.long)
        lengths = (texts != 0).long().cumprod(1).sum(1)
        return functional.ctc_loss(
            logits.log_softmax(-1), texts, steps, lengths, zero_infinity=True, reduction="none"
        ).mean()
    if getattr(model, "predicts_input", False):
        return functional.mse_loss(model(x), x.flatten(1))
    return functional.cross_entropy(model(x), labels)


def make_sgd(model, learning_rate, momentum, weight_decay, **options):
    """SGD that decays weights only: neither biases nor the scales and shifts of norms, nor what the model spares."""
    spared = getattr(model, "no_weight_decay", ())
    decayed = {name: p.ndim > 1 and name not in spared for name, p in model.named_parameters()}
    return torch.optim.SGD(
        [
            {"params": [p for name, p in model.named_parameters() if decayed[name]], "weight_decay": weight_decay},
            {"params": [p for name, p in model.named_parameters() if not decayed[name]], "weight_decay": 0.0},
        ],
        lr=learning_rate,
        momentum=momentum,
        **options,
    )
