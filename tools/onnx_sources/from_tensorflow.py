"""From TensorFlow by tf2onnx: Keras models as traced functions. tf2onnx has no exact GELU (Erfc)."""
import functools
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras  # noqa: E402
import numpy  # noqa: E402
import tensorflow  # noqa: E402
import tf2onnx  # noqa: E402

from onnx_sources import BATCHES, SEED, Export, Makers, Sample  # noqa: E402

OPSET = 18
layers = keras.layers


def convolutions() -> keras.Model:
    return keras.Sequential([
        keras.Input((32, 32, 3)),
        layers.Conv2D(16, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
        layers.MaxPooling2D(2), layers.SeparableConv2D(32, 3, strides=2, padding="same", activation="swish"),
        layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="elu"), layers.AveragePooling2D(2),
        layers.Flatten(), layers.Dense(64, activation="softplus"), layers.Dense(10, activation="softmax"),
    ])


def mobilenet() -> keras.Model:
    return keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None, classes=10)


def recurrent() -> keras.Model:
    return keras.Sequential([
        keras.Input((20,), dtype="int32"),
        layers.Embedding(256, 32), layers.Bidirectional(layers.LSTM(32, return_sequences=True)), layers.GRU(32),
        layers.Dense(10),
    ])


def attention() -> keras.Model:
    tokens = keras.Input((20,), dtype="int32")
    x = layers.Embedding(256, 32)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="relu")(x)))
    return keras.Model(tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


MODELS = {"keras_convolutions": convolutions, "keras_mobilenet_v2": mobilenet, "keras_recurrent": recurrent,
          "keras_attention": attention}


def draw(random: numpy.random.Generator, model: keras.Model, batch: int) -> numpy.ndarray:
    shape = (batch, *model.input_shape[1:])
    if model.inputs[0].dtype == "int32":
        return random.integers(0, 256, shape, numpy.int32)
    return random.standard_normal(shape, numpy.float32)


def settle(model: keras.Model, random: numpy.random.Generator) -> None:
    """Statistics and scales that are not those of a new network."""
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            channels = layer.gamma.shape
            layer.set_weights([random.normal(1, 0.1, channels), random.normal(0, 0.1, channels),
                               random.normal(0, 0.1, channels), random.uniform(0.5, 1.5, channels)])


def export(make) -> Export:
    keras.utils.set_random_seed(SEED)
    random = numpy.random.default_rng(SEED)
    model = make()
    settle(model, random)
    samples = []
    for batch in BATCHES:
        values = draw(random, model, batch)
        samples.append(Sample({"x": values}, {"y": model(values, training=False).numpy()}))

    def write(path: pathlib.Path) -> None:
        @tensorflow.function
        def function(x):
            return {"y": model(x, training=False)}

        kind = tensorflow.TensorSpec((None, *model.input_shape[1:]), model.inputs[0].dtype, name="x")
        tf2onnx.convert.from_function(function, [kind], opset=OPSET, output_path=str(path))

    return Export(write, samples)


def makers() -> Makers:
    return {f"{name}.tf2onnx": functools.partial(export, make) for name, make in MODELS.items()}
