"""What several models share."""

from torch import nn


def is_small(choice, input_shape):
    """Whether a stem or head is the one for small images: as chosen, or by the size."""
    if choice not in (None, "imagenet", "small"):
        raise ValueError(f"'{choice}' is not known; give imagenet or small")
    return choice == "small" if choice else max(input_shape[1:]) < 64


def initialize(model, mode, linear_deviation=None):
    """Normal weights of convolutions (He et al. 2015), biases of zero; fully connected weights normal, or PyTorch's."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
        elif isinstance(module, nn.Linear) and linear_deviation is not None:
            nn.init.normal_(module.weight, std=linear_deviation)
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.zeros_(module.bias)
