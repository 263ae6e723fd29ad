#!/usr/bin/env python3
"""Checks weft's reading and writing of ONNX files against the programs that wrote them, and against ONNX Runtime.

Reading: for each file of tools/onnx_exports.py, what `weft import` says of it, and how far the outputs of `weft infer` are
from those that the framework computed, in each batch: at most 1e-4, relative to the largest output. Writing (--zoo): each
of `weft models` is exported as ONNX, ONNX Runtime runs the file, and its outputs may be 1e-5 from those that weft computes
with the model itself. Where ONNX Runtime's own outputs with and without its optimisations are further apart than that, as
they are of hundreds of layers with drawn weights, weft's may be twice as far from them, and the line says so.

  tools/onnx_exports.py build/onnx_files
  tools/onnx_roundtrip.py build/onnx_files                        # reading
  tools/onnx_roundtrip.py build/onnx_files --only hf_
  tools/onnx_roundtrip.py --zoo                                   # writing; needs ONNX Runtime (tools/onnx_peer.py)

Exits 1 where something is refused or too far away.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Iterator

import onnx_peer

ROOT = onnx_peer.ROOT
READING_TOLERANCE = 1e-4
WRITING_TOLERANCE = 1e-5
BATCH = 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", metavar="DIR", help="with the files of tools/onnx_exports.py")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"), metavar="PROGRAM", help="default: %(default)s")
    parser.add_argument("--zoo", action="store_true", help="export weft's own models, too")
    parser.add_argument("--only", action="append", metavar="NAME", help="files or models that begin so; repeatable")
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.zoo:
        parser.error("name a folder of files, or --zoo")
    if not pathlib.Path(arguments.weft).exists():
        parser.error(f"there is no {arguments.weft}: build it, or name another with --weft")
    return arguments


if __name__ == "__main__":
    ARGUMENTS = parse_arguments()  # before anything is installed
    if ARGUMENTS.zoo:
        onnx_peer.enter()

import numpy  # noqa: E402
from onnx_samples import Arrays, largest_distance, load_arrays, save_arrays  # noqa: E402

sys.path.insert(0, str(ROOT / "benchmarks"))


class Refused(Exception):
    """weft did not do it; the message is its own."""


class Weft:
    """The program's command lines for ONNX, all of them."""

    def __init__(self, program: str):
        self.program = program

    def run(self, *words: str | pathlib.Path) -> str:
        result = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if result.returncode != 0:
            said = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise Refused(f"exit {result.returncode}: {said[-1] if said else 'no message'}")
        return result.stdout

    def verdict(self, file: pathlib.Path) -> str:
        """What it says of a file that it can import."""
        lines = self.run("import", file).strip().splitlines()
        return lines[-1] if lines else "imported"

    def infer(self, model: pathlib.Path, inputs: dict[str, pathlib.Path]) -> Arrays:
        """Outputs by name."""
        with tempfile.TemporaryDirectory() as folder:
            named = [word for name, path in inputs.items() for word in ("--input", f"{name}={path}")]
            self.run("infer", model, *named, "--output-dir", folder)
            return load_arrays(pathlib.Path(folder))

    def export(self, model: str, file: pathlib.Path) -> None:
        self.run("export", model, file)

    def models(self) -> list[dict]:
        return json.loads(self.run("models", "--json"))


def is_wanted(name: str, only: list[str] | None) -> bool:
    return not only or any(name.startswith(begin) for begin in only)


def read_file(weft: Weft, file: pathlib.Path) -> Iterator[tuple[str, float]]:
    """Per batch, how far the outputs are."""
    batches = sorted(file.with_suffix("").glob("batch_*"))
    if not batches:
        raise Refused(f"{file.with_suffix('')} has no samples; tools/onnx_exports.py writes them")
    for batch in batches:
        inputs = {path.stem: path for path in sorted((batch / "inputs").glob("*.npy"))}
        yield batch.name, largest_distance(weft.infer(file, inputs), load_arrays(batch / "outputs"))


def check_reading(weft: Weft, folder: pathlib.Path, only: list[str] | None) -> int:
    """How many files were not read as they should."""
    files = [file for file in sorted(folder.glob("*.onnx")) if is_wanted(file.name, only)]
    if not files:
        sys.exit(f"onnx_roundtrip: no such files in {folder}; tools/onnx_exports.py writes them")
    failures = 0
    for file in files:
        try:
            verdict = weft.verdict(file)
            distances = dict(read_file(weft, file))
        except Refused as refusal:
            failures += 1
            print(f"FAILED  {file.name}: {refusal}", flush=True)
            continue
        passes = max(distances.values()) <= READING_TOLERANCE
        failures += not passes
        shown = ", ".join(f"{batch} {far:.1e}" for batch, far in distances.items())
        print(f"{'ok    ' if passes else 'FAILED'}  {file.name}: {shown}; {verdict}", flush=True)
    print(f"{len(files) - failures} of {len(files)} files give the framework's outputs to {READING_TOLERANCE:g}")
    return failures


def draw_inputs(session, classes: int) -> Arrays:
    """Random values for the inputs that ONNX Runtime sees; whole numbers are tokens."""
    random = numpy.random.default_rng(1)
    inputs = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else BATCH for size in value.shape]
        whole = value.type in ("tensor(int64)", "tensor(int32)")
        inputs[value.name] = (random.integers(0, classes, shape, numpy.int64 if "64" in value.type else numpy.int32) if whole
                              else random.standard_normal(shape, numpy.float32))
    return inputs


def write_model(weft: Weft, model: dict, folder: pathlib.Path) -> tuple[float, float]:
    """How far ONNX Runtime's outputs of the exported model are from weft's, which are those of the model itself to the bit
    (tests/deploy/export_onnx_test.cpp); and how far they may be."""
    import onnxruntime

    file = folder / "model.onnx"
    weft.export(model["name"], file)
    levels = onnxruntime.GraphOptimizationLevel

    def run(inputs: Arrays | None, level: object) -> tuple[Arrays, Arrays]:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        inputs = inputs or draw_inputs(session, model["classes"])
        names = [value.name for value in session.get_outputs()]
        return inputs, dict(zip(names, session.run(names, inputs)))

    inputs, expected = run(None, levels.ORT_ENABLE_ALL)
    save_arrays(inputs, folder / "inputs")
    outputs = weft.infer(file, {name: folder / f"inputs/{name}.npy" for name in inputs})
    if not outputs:
        return numpy.inf, WRITING_TOLERANCE
    far = largest_distance(expected, outputs)
    if far <= WRITING_TOLERANCE:
        return far, WRITING_TOLERANCE
    return far, max(WRITING_TOLERANCE, 2 * largest_distance(expected, run(inputs, levels.ORT_DISABLE_ALL)[1]))


def check_writing(weft: Weft, only: list[str] | None) -> int:
    """How many models were not written as they should."""
    models = [model for model in weft.models() if is_wanted(model["name"], only)]
    failures = beyond = 0
    for model in models:
        try:
            with tempfile.TemporaryDirectory() as folder:
                far, allowed = write_model(weft, model, pathlib.Path(folder))
        except Exception as refusal:  # noqa: BLE001: weft's refusals and ONNX Runtime's of many kinds
            failures += 1
            print(f"FAILED  {model['name']}: {refusal}", flush=True)
            continue
        failures += far > allowed
        beyond += WRITING_TOLERANCE < far <= allowed
        own = f"; ONNX Runtime differs by {allowed / 2:.1e} from itself without optimisations" if allowed > WRITING_TOLERANCE else ""
        print(f"{'ok    ' if far <= allowed else 'FAILED'}  {model['name']}: {far:.1e}{own}", flush=True)
    print(f"{len(models) - failures - beyond} of {len(models)} models give weft's outputs in ONNX Runtime to {WRITING_TOLERANCE:g}" +
          (f", {beyond} more to twice what ONNX Runtime differs by from itself" if beyond else ""))
    return failures


def main(arguments: argparse.Namespace) -> int:
    weft = Weft(arguments.weft)
    try:
        failures = check_reading(weft, arguments.folder, arguments.only) if arguments.folder else 0
        failures += check_writing(weft, arguments.only) if arguments.zoo else 0
    except (Refused, OSError) as failure:
        sys.exit(f"onnx_roundtrip: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(ARGUMENTS))
