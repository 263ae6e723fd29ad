"""How the models are trained: labels, loss and SGD, as weft has them."""

import torch
from torch.nn import functional


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
