"""What tools/onnx_exports.py exports: models of other frameworks with seeded random weights, and what writes each as ONNX."""
import pathlib
from typing import Callable, NamedTuple

from onnx_samples import Arrays, Sample

__all__ = ["BATCHES", "SEED", "Arrays", "Export", "Makers", "Sample"]


class Export(NamedTuple):
    write: Callable[[pathlib.Path], None]  # the ONNX file
    samples: list[Sample]  # of several batches


# By the file's name without its ending.
Makers = dict[str, Callable[[], Export]]
BATCHES = (2, 3)
SEED = 1
