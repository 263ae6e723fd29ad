"""weft's models in PyTorch, with the same arithmetic and the same parameter names. PyTorch 1.13 (the tests) and 2.13 (the
benchmarks), no torchvision."""

from models.airbench import Airbench94
from models.densenet import Densenet
from models.image_to_image import Autoencoder, UnetSmall
from models.mobilenet import MobilenetV2
from models.plain import Alexnet, Lenet5, Mlp, Vgg16
from models.recurrent import Crnn, LstmClassifier, Seq2seqAttention
from models.resnest import Resnest
from models.resnet import BasicBlock, Bottleneck, Resnet9, Resnet20, WideBottleneck, WideResnet, resnet
from models.training import label_count, loss_of, make_sgd
from models.transformers import TransformerLm, VitTiny

__all__ = ["MODELS", "build", "label_count", "loss_of", "make_sgd"]

MODELS = {
    "mlp": Mlp,
    "lenet5": Lenet5,
    "alexnet": Alexnet,
    "vgg16": Vgg16,
    "resnet9": Resnet9,
    "resnet20": Resnet20,
    "resnet18": resnet(BasicBlock, 2, 2, 2, 2),
    "resnet34": resnet(BasicBlock, 3, 4, 6, 3),
    "resnet50": resnet(Bottleneck, 3, 4, 6, 3),
    "resnet50_128": resnet(Bottleneck, 3, 4, 6, 3, stem="deep", shortcut="average_pool"),
    "resnet101": resnet(Bottleneck, 3, 4, 23, 3),
    "resnet152": resnet(Bottleneck, 3, 8, 36, 3),
    "resnest269": Resnest,
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
