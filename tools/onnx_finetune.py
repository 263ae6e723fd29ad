#!/usr/bin/env python3
"""Trains each network of tools/onnx_exports.py further with weft, on small data that are made for its inputs and outputs.

Images get a colour per class, pixels that of their class; labelled texts have a letter per class, language models a text that
repeats. `weft train --model onnx:FILE` runs for some epochs, and the loss of the last one must lie below --share of the first's
(default 0.9). Models that are no networks, or whose inputs weft does not feed, are listed with what weft says.

  tools/onnx_exports.py build/onnx_files
  tools/onnx_finetune.py build/onnx_files
  tools/onnx_finetune.py build/onnx_files --only hf_

Exits 1 where a network is refused or does not learn.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib
from typing import NamedTuple

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Exports fold batch norms away. Drawn weights of 52 convolutions give nearly the same for all pictures then, and PyTorch, which
# begins with the weights of these files, does not learn either (loss 1.39 after 12 epochs).
UNTRAINABLE = ("mobilenet_v2.",)
CLASSES = 4
SAMPLES = 64
BATCH = 16


class Case(NamedTuple):
    """Data for a network, as weft names them, and their classes."""

    spec: str
    kind: str


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR", help="with the files of tools/onnx_exports.py")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"), metavar="PROGRAM", help="default: %(default)s")
    parser.add_argument("--only", action="append", metavar="NAME", help="files that begin so; repeatable; default: all")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--share", type=float, default=0.9, help="of the first epoch's loss that the last one's may have")
    return parser.parse_args()


def write_png(path: pathlib.Path, pixels: numpy.ndarray) -> None:
    """[H,W] grey or [H,W,3] colours, 8 bits."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


COLOURS = numpy.array([[220, 40, 40], [40, 220, 40], [40, 40, 220], [210, 210, 40]], numpy.uint8)


def noisy(random: numpy.random.Generator, pixels: numpy.ndarray) -> numpy.ndarray:
    return numpy.clip(pixels.astype(int) + random.integers(-30, 31, pixels.shape), 0, 255).astype(numpy.uint8)


def make_pictures(folder: pathlib.Path, size: int) -> Case:
    random = numpy.random.default_rng(0)
    for index in range(SAMPLES):
        name = folder / f"class{index % CLASSES}"
        name.mkdir(exist_ok=True)
        write_png(name / f"{index}.png", noisy(random, numpy.tile(COLOURS[index % CLASSES], (size, size, 1))))
    return Case(f"images:{folder}?size={size}&resize={size}&decode=exact", "images")


def make_masks(folder: pathlib.Path, size: int, classes: int) -> Case:
    random = numpy.random.default_rng(0)
    for kind in ("images", "masks"):
        (folder / kind).mkdir()
    for index in range(SAMPLES):
        mask = numpy.kron(random.integers(0, classes, (2, 2)), numpy.ones((size // 2, size // 2), int)).astype(numpy.uint8)
        write_png(folder / f"images/{index}.png", noisy(random, COLOURS[mask]))
        write_png(folder / f"masks/{index}.png", mask)
    return Case(f"masks:{folder}?height={size}&width={size}&classes={classes}", "masks")


def make_texts(folder: pathlib.Path, length: int) -> Case:
    random = numpy.random.default_rng(0)
    lines = []
    for index in range(SAMPLES):
        letters = random.choice(list("xyz"), length)
        letters[:: 2] = "abcd"[index % CLASSES]
        lines.append(f"class{index % CLASSES}\t{''.join(letters)}\n")
    (folder / "texts.tsv").write_text("".join(lines))
    return Case(f"labelled:{folder}/texts.tsv?length={length}", "labelled texts")


def make_book(folder: pathlib.Path, length: int) -> Case:
    (folder / "book.txt").write_text("a quick brown fox jumps over the lazy dog; " * (SAMPLES * length // 40))
    return Case(f"text:{folder}/book.txt?length={length}", "text")


def make_case(file: pathlib.Path, folder: pathlib.Path) -> Case | None:
    """By the shapes of the file's samples; None where weft has no such data."""
    batch = next(iter(sorted(file.with_suffix("").glob("batch_*"))))
    inputs = {path.stem: numpy.load(path) for path in sorted((batch / "inputs").glob("*.npy"))}
    outputs = [numpy.load(path) for path in sorted((batch / "outputs").glob("*.npy"))]
    read = next((values for name, values in inputs.items() if "mask" not in name), None)
    given = outputs[0]
    if read is None or len(outputs) != 1:
        return None
    rows = len(read)
    if read.ndim == 4:
        size = read.shape[2]
        if given.ndim == 2 and len(given) == rows * size * size:  # a row per pixel
            return make_masks(folder, size, given.shape[1])
        if given.ndim == 2:
            return make_pictures(folder, size)
        return make_masks(folder, size, given.shape[1]) if given.ndim == 4 else None
    if read.ndim == 2 and numpy.issubdtype(read.dtype, numpy.integer):
        is_per_token = given.ndim == 3 or len(given) == rows * read.shape[1]
        return make_book(folder, read.shape[1]) if is_per_token else make_texts(folder, read.shape[1])
    return None


def train(weft: str, file: pathlib.Path, case: Case, run: pathlib.Path, epochs: int) -> list[float]:
    """The loss of each epoch. RuntimeError with weft's message where it refuses."""
    command = [weft, "train", "--model", f"onnx:{file}", "--data", case.spec, "--run", run, "--epochs", epochs, "--batch", BATCH,
               "--quiet", "--set", "optimizer.name=adamw", "--set", "optimizer.learning_rate=0.001"]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError((result.stderr.strip() or "no message").splitlines()[-1])
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record["train_loss"] for record in records if record["kind"] == "epoch"]


def main() -> int:
    arguments = parse_arguments()
    files = [file for file in sorted(arguments.folder.glob("*.onnx"))
             if not arguments.only or any(file.name.startswith(begin) for begin in arguments.only)]
    if not files:
        sys.exit(f"onnx_finetune: no such files in {arguments.folder}; tools/onnx_exports.py writes them")
    learned = failures = 0
    for file in files:
        if file.name.startswith(UNTRAINABLE):
            print(f"  -     {file.name}: PyTorch does not learn from these weights either", flush=True)
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "data").mkdir()
            case = make_case(file, folder / "data")
            if case is None:
                print(f"  -     {file.name}: no network that data of weft's kinds feed", flush=True)
                continue
            try:
                losses = train(arguments.weft, file, case, folder / "run", arguments.epochs)
            except RuntimeError as refusal:
                failures += 1
                print(f"FAILED  {file.name}: {refusal}", flush=True)
                continue
        is_better = losses[-1] < arguments.share * losses[0]
        learned += is_better
        failures += not is_better
        print(f"{'ok    ' if is_better else 'FAILED'}  {file.name}: {case.kind}, loss {losses[0]:.4f} -> {losses[-1]:.4f}",
              flush=True)
    print(f"{learned} of {learned + failures} networks learn")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
