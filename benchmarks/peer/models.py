"""weft's models in PyTorch, with the same arithmetic and the same parameter names. PyTorch 1.13, no torchvision."""

import math

import torch
from torch import nn
from torch.nn import functional


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


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Bottleneck(nn.Module):
    """The stride is in the 3x3 convolution, as in torchvision (ResNet v1.5)."""

    expansion = 4

    def __init__(self, inputs, planes, stride, downsample):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.downsample = downsample

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = functional.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Resnet(nn.Module):
    """He et al. 2016, with torchvision's names. Stem "imagenet": 7x7 stride 2, max pooling; "small": 3x3."""

    def __init__(self, input_shape, classes, block, depths, stem):
        super().__init__()
        if stem not in ("imagenet", "small"):
            raise ValueError(f"stem '{stem}' is not known; give imagenet or small")
        self.small = stem == "small"
        kernel, stride, padding = (3, 1, 1) if self.small else (7, 2, 3)
        self.conv1 = nn.Conv2d(input_shape[0], 64, kernel, stride, padding, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.inputs = 64
        self.layer1 = self.make_layer(block, 64, depths[0], 1)
        self.layer2 = self.make_layer(block, 128, depths[1], 2)
        self.layer3 = self.make_layer(block, 256, depths[2], 2)
        self.layer4 = self.make_layer(block, 512, depths[3], 2)
        self.fc = nn.Linear(512 * block.expansion, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def make_layer(self, block, planes, depth, stride):
        blocks = []
        for index in range(depth):
            step = stride if index == 0 else 1
            outputs = planes * block.expansion
            downsample = None
            if step != 1 or self.inputs != outputs:
                downsample = nn.Sequential(
                    nn.Conv2d(self.inputs, outputs, 1, step, bias=False), nn.BatchNorm2d(outputs)
                )
            blocks.append(block(self.inputs, planes, step, downsample))
            self.inputs = outputs
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        if not self.small:
            x = functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        y = scores.masked_fill(mask, -1e30).softmax(-1) @ v
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


class TransformerLm(nn.Module):
    """GPT-2's shape: pre-norm, learned positions, causal. Tokens [N,T] to logits [N*T,classes]."""

    def __init__(self, input_shape, classes, layers=4, heads=4, width=128):
        super().__init__()
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


MODELS = {
    "mlp": Mlp,
    "lenet5": Lenet5,
    "resnet9": Resnet9,
    "resnet18": lambda shape, classes, stem="imagenet": Resnet(shape, classes, BasicBlock, (2, 2, 2, 2), stem),
    "resnet50": lambda shape, classes, stem="imagenet": Resnet(shape, classes, Bottleneck, (3, 4, 6, 3), stem),
    "transformer_lm": TransformerLm,
}


def build(name, input_shape, classes, **options):
    """The model for inputs of this shape per sample: (C,H,W), or (T,) for token sequences."""
    return MODELS[name](tuple(input_shape), classes, **options)


def make_sgd(model, learning_rate, momentum, weight_decay, **options):
    """SGD that decays weights only: neither biases nor the scales and shifts of norms."""
    parameters = list(model.parameters())
    return torch.optim.SGD(
        [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=learning_rate,
        momentum=momentum,
        **options,
    )
