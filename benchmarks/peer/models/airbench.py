"""airbench94."""

import torch
from torch import nn
from torch.nn import functional


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
