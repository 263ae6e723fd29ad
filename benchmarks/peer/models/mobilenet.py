"""mobilenet_v2."""

from torch import nn
from torch.nn import functional

from models.parts import initialize, is_small


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
