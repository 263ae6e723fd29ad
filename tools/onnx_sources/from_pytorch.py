"""From PyTorch, by both of its exporters: models of benchmarks/peer/models, and of `transformers` from small configurations.

`dynamo` is torch.onnx.export's way since 2.9, with the weights in a file of their own; `script` the older one.
"""
import copy
import functools
import pathlib
import sys
import warnings
from typing import Callable, NamedTuple

import numpy
import torch
import transformers
from torch import nn

from onnx_sources import BATCHES, SEED, Export, Makers, Sample

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/peer"))
from models import build  # noqa: E402


class Image(NamedTuple):
    shape: tuple[int, ...]

    def draw(self, random: numpy.random.Generator, batch: int) -> dict[str, numpy.ndarray]:
        return {"image": random.standard_normal((batch, *self.shape), numpy.float32)}

    def dynamic(self) -> dict[str, dict[int, str]]:
        return {"image": {0: "batch"}}


class Tokens(NamedTuple):
    length: int
    vocabulary: int
    varies: bool = False  # whether the length may differ from batch to batch
    mask: bool = False  # says of each sequence how much of it is text

    def draw(self, random: numpy.random.Generator, batch: int) -> dict[str, numpy.ndarray]:
        length = self.length - 5 * (batch - BATCHES[0]) if self.varies else self.length
        inputs = {"tokens": random.integers(0, self.vocabulary, (batch, length))}
        if self.mask:
            lengths = random.integers(length // 2, length, (batch, 1))
            inputs["mask"] = (numpy.arange(length) <= lengths).astype(numpy.int64)
        return inputs

    def dynamic(self) -> dict[str, dict[int, str]]:
        axes = {0: "batch", 1: "length"} if self.varies else {0: "batch"}
        return {name: dict(axes) for name in (["tokens", "mask"] if self.mask else ["tokens"])}


class Network(NamedTuple):
    make: Callable[[], nn.Module]
    input: Image | Tokens


class Logits(nn.Module):
    """A model of `transformers` that takes and returns tensors."""

    def __init__(self, model: nn.Module, *names: str):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs))).logits


def peer(name: str, shape: tuple[int, ...], classes: int = 10, **options) -> Callable[[], nn.Module]:
    return functools.partial(build, name, shape, classes, **options)


def of_transformers(model: str, config: str, *inputs: str, **options) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        settings = getattr(transformers, config)(**options)
        return Logits(getattr(transformers, model)(settings), *inputs)

    return make


SMALL, PHOTO = (3, 64, 64), (3, 224, 224)
TEXT = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 500}
NETWORKS = {
    "resnet18": Network(peer("resnet18", SMALL, width=16), Image(SMALL)),
    "mobilenet_v2": Network(peer("mobilenet_v2", PHOTO, width="0.5"), Image(PHOTO)),
    "unet_small": Network(peer("unet_small", SMALL, 3), Image(SMALL)),
    "lstm_classifier": Network(peer("lstm_classifier", (20,), layers=2, width=64, bidirectional="yes"), Tokens(20, 256)),
    "transformer_lm": Network(peer("transformer_lm", (24,), 65), Tokens(24, 65)),
    "hf_resnet": Network(
        of_transformers("ResNetForImageClassification", "ResNetConfig", "pixel_values", embedding_size=16,
                        hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2], num_labels=10), Image(PHOTO)),
    "hf_convnext": Network(
        of_transformers("ConvNextForImageClassification", "ConvNextConfig", "pixel_values",
                        hidden_sizes=[24, 48, 96, 192], depths=[2, 2, 3, 2], num_labels=10), Image(SMALL)),
    "hf_swin": Network(
        of_transformers("SwinForImageClassification", "SwinConfig", "pixel_values", image_size=64, patch_size=2,
                        window_size=4, embed_dim=24, depths=[2, 2, 2], num_heads=[2, 4, 8], num_labels=10), Image(SMALL)),
    "hf_vit": Network(
        of_transformers("ViTForImageClassification", "ViTConfig", "pixel_values", image_size=224, patch_size=16,
                        hidden_size=96, num_hidden_layers=4, num_attention_heads=3, intermediate_size=192, num_labels=10),
        Image(PHOTO)),
    "hf_bert": Network(
        of_transformers("BertForSequenceClassification", "BertConfig", "input_ids", "attention_mask",
                        max_position_embeddings=64, num_labels=10, **TEXT), Tokens(32, 500, varies=True, mask=True)),
    "hf_gpt2": Network(
        of_transformers("GPT2LMHeadModel", "GPT2Config", "input_ids", "attention_mask", n_embd=128, n_layer=3, n_head=4,
                        n_positions=64, vocab_size=500, use_cache=False), Tokens(32, 500, varies=True, mask=True)),
    "hf_llama": Network(
        of_transformers("LlamaForCausalLM", "LlamaConfig", "input_ids", "attention_mask", num_key_value_heads=2,
                        max_position_embeddings=64, use_cache=False, **TEXT), Tokens(32, 500, mask=True)),
}


def settle(network: nn.Module) -> nn.Module:
    """For inference, with statistics, biases and scales that are not those of a new network, so that errors in them show."""
    for module in network.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.normal_(module.weight, 1, 0.1)
            nn.init.normal_(module.bias, 0, 0.1)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network.eval().requires_grad_(False)


def write_dynamo(network: nn.Module, inputs: dict[str, torch.Tensor], dynamic: dict, path: pathlib.Path) -> None:
    sizes = {name: torch.export.Dim(name) for axes in dynamic.values() for name in axes.values()}
    shapes = tuple({axis: sizes[name] for axis, name in axes.items()} for axes in dynamic.values())
    takes_any_number = isinstance(network, Logits)
    torch.onnx.export(network, tuple(inputs.values()), path, input_names=list(inputs), output_names=["logits"], dynamo=True,
                      dynamic_shapes=(shapes,) if takes_any_number else shapes, verbose=False)


def write_script(network: nn.Module, inputs: dict[str, torch.Tensor], dynamic: dict, path: pathlib.Path) -> None:
    torch.onnx.export(network, tuple(inputs.values()), path, input_names=list(inputs), output_names=["logits"], dynamo=False,
                      dynamic_axes=dynamic)


WRITERS = {"dynamo": write_dynamo, "script": write_script}


def export(network: Network, writer: Callable) -> Export:
    torch.manual_seed(SEED)
    random = numpy.random.default_rng(SEED)
    module = settle(network.make())
    samples = []
    for batch in BATCHES:
        inputs = network.input.draw(random, batch)
        outputs = module(*map(torch.from_numpy, inputs.values()))
        samples.append(Sample(inputs, {"logits": outputs.numpy()}))

    def write(path: pathlib.Path) -> None:
        example = {name: torch.from_numpy(values) for name, values in samples[0].inputs.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer(copy.deepcopy(module), example, network.input.dynamic(), path)

    return Export(write, samples)


def makers() -> Makers:
    return {f"{name}.{way}": functools.partial(export, network, writer)
            for name, network in NETWORKS.items() for way, writer in WRITERS.items()}
