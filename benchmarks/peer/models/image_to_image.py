"""unet_small and autoencoder, which give a value per pixel."""

import torch
from torch import nn
from torch.nn import functional


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
