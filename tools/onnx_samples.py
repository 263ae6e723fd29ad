"""Samples beside an ONNX file, as NumPy's files: FILE/batch_N/inputs/NAME.npy and outputs/NAME.npy; and how far results are."""
import pathlib
import shutil
from typing import NamedTuple

import numpy

Arrays = dict[str, numpy.ndarray]


class Sample(NamedTuple):
    """Inputs of a model and what the framework itself computes from them, by name."""

    inputs: Arrays
    outputs: Arrays


def save_arrays(arrays: Arrays, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True)
    for name, values in arrays.items():
        numpy.save(folder / f"{name}.npy", values)


def load_arrays(folder: pathlib.Path) -> Arrays:
    return {path.stem: numpy.load(path) for path in sorted(folder.glob("*.npy"))}


def save_samples(samples: list[Sample], folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for sample in samples:
        batch = folder / f"batch_{len(next(iter(sample.inputs.values())))}"
        save_arrays(sample.inputs, batch / "inputs")
        save_arrays(sample.outputs, batch / "outputs")


def distance(got: numpy.ndarray | None, wanted: numpy.ndarray) -> float:
    """The largest difference, relative to the largest element that is wanted. Infinite where one cannot compare."""
    if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
        return numpy.inf
    largest = numpy.abs(wanted.astype(numpy.float64)).max(initial=0)
    difference = numpy.abs(got.astype(numpy.float64) - wanted.astype(numpy.float64)).max(initial=0)
    relative = float(difference / largest) if largest else float(difference)
    return relative if numpy.isfinite(relative) else numpy.inf


def largest_distance(got: Arrays, wanted: Arrays) -> float:
    return max(distance(got.get(name), values) for name, values in wanted.items())
