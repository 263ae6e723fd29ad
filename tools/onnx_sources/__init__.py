"""What tools/onnx_exports.py exports: models of other frameworks with seeded random weights, and what writes each as ONNX."""
import pathlib
from typing import Callable, NamedTuple

import numpy

Arrays = dict[str, numpy.ndarray]


class Sample(NamedTuple):
    """Inputs of a model and what the framework itself computes from them, by name."""

    inputs: Arrays
    outputs: Arrays


class Export(NamedTuple):
    write: Callable[[pathlib.Path], None]  # the ONNX file
    samples: list[Sample]  # of several batches


# By the file's name without its ending.
Makers = dict[str, Callable[[], Export]]
BATCHES = (2, 3)
SEED = 1
