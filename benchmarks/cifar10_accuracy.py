#!/usr/bin/env python3
"""Test accuracy of resnet18 on CIFAR-10 after a few epochs, in weft and in PyTorch, with the same recipe.

Both train with SGD (Nesterov momentum 0.9, weight decay 5e-4 on weights only), a one-cycle rate, batch 128, random
crops (padding 4) and flips, from PyTorch's initial distributions; only the random numbers differ. Exits 1 where the
accuracies lie more than two points apart.

  benchmarks/cifar10_accuracy.py DIR                          # about an hour on two cores
  benchmarks/cifar10_accuracy.py DIR --images-per-file 2000   # a fifth of the training images

DIR holds the standard binary files data_batch_1.bin ... test_batch.bin. The first benchmark installs
PyTorch (benchmarks/peer_python.py).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from peer_python import NoPeer, peer_python

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = 1 + 3 * 32 * 32


def read_records(paths):
    import numpy
    import torch

    raw = numpy.concatenate([numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, RECORD) for path in paths])
    return torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()).float(), torch.from_numpy(raw[:, 0].astype("int64"))


def augment(images, padding=4):
    import torch
    import torch.nn.functional as functional

    padded = functional.pad(images, (padding,) * 4)
    tops, lefts = torch.randint(2 * padding + 1, (2, len(images))).tolist()
    crops = torch.stack([padded[i, :, t : t + 32, l : l + 32] for i, (t, l) in enumerate(zip(tops, lefts))])
    flipped = torch.rand(len(images)) < 0.5
    crops[flipped] = crops[flipped].flip(3)
    return crops


def train_pytorch(data, arguments):
    sys.path.insert(0, str(ROOT / "benchmarks/peer"))
    import torch

    import models

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    images, labels = read_records([data / f"data_batch_{part}.bin" for part in range(1, 6)])
    test_images, test_labels = read_records([data / "test_batch.bin"])
    mean, deviation = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    model = models.build("resnet18", (3, 32, 32), 10, stem=arguments.stem).to(memory_format=torch.channels_last)
    optimizer = models.make_sgd(model, arguments.learning_rate, 0.9, 5e-4, nesterov=True)
    steps = len(images) // arguments.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, arguments.learning_rate, total_steps=arguments.epochs * steps, cycle_momentum=False)
    begin = time.monotonic()
    for epoch in range(arguments.epochs):
        model.train()
        order = torch.randperm(len(images))
        for step in range(steps):
            index = order[step * arguments.batch : (step + 1) * arguments.batch]
            batch = ((augment(images[index]) - mean) / deviation).contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(batch), labels[index]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum((model((x - mean) / deviation).argmax(1) == y).sum().item()
                        for x, y in zip(test_images.split(500), test_labels.split(500)))
        print(f"PyTorch epoch {epoch + 1}: {100 * right / len(test_labels):.2f} %, {time.monotonic() - begin:.0f} s", flush=True)
    return right / len(test_labels), time.monotonic() - begin


def train_weft(data, run, arguments):
    settings = [f"model.stem={arguments.stem}", "optimizer.nesterov=true", "optimizer.momentum=0.9",
                "optimizer.weight_decay=5e-4", f"optimizer.learning_rate={arguments.learning_rate}",
                "schedule.name=one_cycle", "augment.crop_padding=4", "augment.flip=random"]
    command = [arguments.weft, "train", "--model", "resnet18", "--data", f"cifar10:{data}", "--run", run,
               "--epochs", str(arguments.epochs), "--batch", str(arguments.batch), "--seed", str(arguments.seed),
               "--threads", str(arguments.threads)]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((run / "summary.json").read_text())
    return summary["test_accuracy"], summary["train_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--stem", choices=["small", "imagenet"], default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--images-per-file", type=int, help="use only so many images of each training file")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    if sys.executable != (python := peer_python()):
        os.execv(python, [python, __file__, *sys.argv[1:]])  # PyTorch's side runs in this process
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data
        if arguments.images_per_file:
            data = pathlib.Path(temporary) / "data"
            data.mkdir()
            for part in range(1, 6):
                content = (arguments.data / f"data_batch_{part}.bin").read_bytes()
                (data / f"data_batch_{part}.bin").write_bytes(content[: RECORD * arguments.images_per_file])
            (data / "test_batch.bin").write_bytes((arguments.data / "test_batch.bin").read_bytes())
        ours, our_seconds = train_weft(data, pathlib.Path(temporary) / "run", arguments)
        print(f"weft: {100 * ours:.2f} %, {our_seconds:.0f} s", flush=True)
        theirs, their_seconds = train_pytorch(data, arguments)
    print("\n| | test accuracy | seconds |\n|---|---|---|")
    print(f"| weft | {100 * ours:.2f} % | {our_seconds:.0f} |\n| PyTorch | {100 * theirs:.2f} % | {their_seconds:.0f} |")
    sys.exit(0 if abs(ours - theirs) <= 0.02 else 1)


if __name__ == "__main__":
    try:
        main()
    except NoPeer as failure:
        sys.exit(f"cifar10_accuracy: {failure}")
