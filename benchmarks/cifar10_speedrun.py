#!/usr/bin/env python3
"""The CIFAR-10 speed run in weft and in PyTorch: test accuracy and how long it took, from the same recipe.

Both sides read recipes/cifar10_speedrun.toml (network and recipe of airbench94, Jordan 2024) and train on the same files
with as many threads; PyTorch in channels-last with bfloat16 autocast. Only the random numbers differ, and the running
statistics of the norms, which the paper's look-ahead averages too. The time is that of everything: start, reading,
whitening, training, the evaluation of six views of each test image; in PyTorch without its import.

  benchmarks/cifar10_speedrun.py DIR                                  # about twenty minutes on two cores
  benchmarks/cifar10_speedrun.py DIR --only weft                      # what `make speedrun` does
  benchmarks/cifar10_speedrun.py DIR --images-per-file 1000 --epochs 5   # a short one

DIR holds the standard binary files data_batch_1.bin ... test_batch.bin. The first benchmark installs
PyTorch (benchmarks/peer_python.py).
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

from sides import SideFailed, environment, python_of_peer

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPE = ROOT / "recipes/cifar10_speedrun.toml"
RECORD = 1 + 3 * 32 * 32
# What two runs of one program that differ in their seed may differ by: two deviations of 0.14 points (Jordan 2024).
NOISE = 0.003


def read_records(paths):
    """Images u8 [N,3,32,32] and labels."""
    import numpy
    import torch

    raw = numpy.concatenate([numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, RECORD) for path in paths])
    return torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(raw[:, 0].astype("int64"))


class Images:
    """Training images, padded once; batches are cropped, flipped and normalised."""

    def __init__(self, images, augment):
        import torch

        floats = images.float() / 255
        self.mean = floats.mean((0, 2, 3)).view(1, 3, 1, 1)
        self.deviation = floats.std((0, 2, 3), unbiased=False).view(1, 3, 1, 1)
        self.padding = augment["crop_padding"]
        assert augment["padding"] == "reflect" and augment["flip"] == "alternating", "what is done below"
        self.padded = torch.nn.functional.pad(floats, (self.padding,) * 4, mode="reflect").mul_(255).round_().byte()
        self.flipped = torch.rand(len(images)) < 0.5

    def normalise(self, images):
        import torch

        floats = (images.float() / 255 - self.mean) / self.deviation
        return floats.contiguous(memory_format=torch.channels_last)

    def batch(self, index, epoch):
        import torch

        padded, places = self.padded[index], 2 * self.padding + 1
        shift = torch.randint(places, (2, len(index)))
        crops = torch.empty((len(index), 3, 32, 32), dtype=torch.uint8)
        for top in range(places):
            for left in range(places):
                here = (shift[0] == top) & (shift[1] == left)
                crops[here] = padded[here, :, top : top + 32, left : left + 32]
        mirror = self.flipped[index] ^ (epoch % 2 == 1)
        crops[mirror] = crops[mirror].flip(3)
        return self.normalise(crops)


def mean_logits(model, images):
    """Of the image, for one half, and of it moved by a pixel either way; each with its mirror image."""
    import torch

    padded = torch.nn.functional.pad(images, (1,) * 4, mode="reflect")
    views = [(0.5, images), (0.25, padded[:, :, :32, :32]), (0.25, padded[:, :, 2:, 2:])]
    return sum(weight / 2 * (model(view).float() + model(view.flip(3)).float()) for weight, view in views)


def make_optimizer(model, recipe):
    import torch

    settings, groups = recipe["optimizer"], recipe["optimizer"]["groups"]
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    norms = [p for name, p in model.named_parameters() if "norm" in name]
    weights = [p for name, p in model.named_parameters() if "norm" not in name and not name.startswith("whiten")]
    parameters = [
        {"params": weights, "lr": rate, "weight_decay": decay},
        {"params": [model.whiten.bias], "lr": rate, "weight_decay": groups["whitening_bias"]["weight_decay"]},
        {"params": norms, "lr": groups["norms"]["learning_rate_factor"] * rate, "weight_decay": groups["norms"]["weight_decay"]},
    ]
    return torch.optim.SGD(parameters, lr=rate, momentum=settings["momentum"], nesterov=settings["nesterov"])


class Lookahead:
    def __init__(self, parameters, settings, steps):
        self.fast, self.settings, self.steps = parameters, settings, steps
        self.slow = [p.detach().clone() for p in parameters]

    def after(self, step):
        import torch

        s = self.settings
        if (step + 1) % s["steps"] != 0 and step + 1 != self.steps:
            return
        share = s["alpha"] + (s["end_alpha"] - s["alpha"]) * ((step + 1) / self.steps) ** s["power"]
        with torch.no_grad():
            for slow, fast in zip(self.slow, self.fast):
                fast.copy_(slow.lerp_(fast, share))


def train_pytorch(data, arguments):
    recipe = tomllib.loads(RECIPE.read_text())
    sys.path.insert(0, str(ROOT / "benchmarks/peer"))
    import torch

    import models

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    begin = time.monotonic()
    raw, labels = read_records([data / f"data_batch_{part}.bin" for part in range(1, 6)])
    test_raw, test_labels = read_records([data / "test_batch.bin"])
    images = Images(raw, recipe["augment"])
    model = models.build("airbench94", (3, 32, 32), 10)
    with torch.no_grad():
        model.whiten_from(images.normalise(raw[torch.randperm(len(raw))[:5000]]))
    model.whiten.weight.requires_grad_(False)
    model.to(memory_format=torch.channels_last)
    optimizer = make_optimizer(model, recipe)
    batch, epochs = recipe["batch"], arguments.epochs or recipe["epochs"]
    steps = len(raw) // batch
    all_steps = math.ceil(epochs * steps)
    schedule = recipe["schedule"]
    assert schedule["name"] == "one_cycle", "what is done below"
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [group["lr"] for group in optimizer.param_groups], total_steps=all_steps,
        pct_start=schedule["rise"], anneal_strategy=schedule["annealing"], cycle_momentum=False,
        div_factor=schedule["start_divisor"], final_div_factor=schedule["end_divisor"])
    lookahead = Lookahead([p for p in model.parameters() if p.requires_grad], recipe["lookahead"], all_steps)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=recipe["loss"]["label_smoothing"])
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.pytorch_precision == "bf16")
    training_begin = time.monotonic()
    for epoch in range(math.ceil(epochs)):
        model.train()
        model.whiten.bias.requires_grad_(epoch < recipe["optimizer"]["groups"]["whitening_bias"]["epochs"])
        order = torch.randperm(len(raw))
        for step in range(min(steps, all_steps - epoch * steps)):
            index = order[step * batch : (step + 1) * batch]
            x = images.batch(index, epoch)
            with autocast:
                logits = model(x)
            optimizer.zero_grad(set_to_none=True)
            loss_of(logits.float(), labels[index]).backward()
            optimizer.step()
            scheduler.step()
            lookahead.after(epoch * steps + step)
        print(f"PyTorch epoch {epoch + 1}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    training_seconds = time.monotonic() - training_begin
    model.eval()
    with torch.no_grad(), autocast:
        right = sum((mean_logits(model, images.normalise(x)).argmax(1) == y).sum().item()
                    for x, y in zip(test_raw.split(250), test_labels.split(250)))
    return {"accuracy": right / len(test_labels), "seconds": time.monotonic() - begin,
            "images_per_second": all_steps * batch / training_seconds}


def train_weft(data, arguments):
    with tempfile.TemporaryDirectory() as temporary:
        command = [arguments.weft, "train", RECIPE, "--data", f"cifar10:{data}", "--run", f"{temporary}/run", "--quiet",
                   "--json", "--seed", str(arguments.seed), "--threads", str(arguments.threads)]
        if arguments.epochs:
            command += ["--epochs", str(arguments.epochs)]
        for setting in arguments.set:
            command += ["--set", setting]
        begin = time.monotonic()
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment())
        seconds = time.monotonic() - begin
    if result.returncode != 0:
        sys.exit("weft train failed")
    summary = json.loads(result.stdout)
    return {"accuracy": summary["test_accuracy"], "seconds": seconds,
            "images_per_second": summary["images_per_second"], "precision": summary["precision"]}


def train_pytorch_apart(data, arguments):
    """In a process of its own, which loads its libraries with the right number of threads."""
    command = [python_of_peer(), __file__, str(data), "--side", "--seed", str(arguments.seed), "--threads",
               str(arguments.threads), "--pytorch-precision", arguments.pytorch_precision]
    if arguments.epochs:
        command += ["--epochs", str(arguments.epochs)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(arguments.threads))
    if result.returncode != 0:
        sys.exit("PyTorch failed")
    return json.loads(result.stdout)


def part_of(data, images_per_file, target):
    """The first images of each training file, and the test file."""
    for part in range(1, 6):
        content = (data / f"data_batch_{part}.bin").read_bytes()
        (target / f"data_batch_{part}.bin").write_bytes(content[: RECORD * images_per_file])
    (target / "test_batch.bin").write_bytes((data / "test_batch.bin").read_bytes())
    return target


def report(rounds):
    """Markdown: medians over the rounds, and how long weft took to what PyTorch reached."""
    print("\n| | test accuracy | seconds | images/s in training |\n|---|---|---|---|")
    medians = {}
    for side in rounds[0]:
        medians[side] = {key: statistics.median(r[side][key] for r in rounds)
                         for key in ("accuracy", "seconds", "images_per_second")}
        m = medians[side]
        print(f"| {side} | {100 * m['accuracy']:.2f} % | {m['seconds']:.1f} | {m['images_per_second']:.0f} |")
    if len(medians) < 2:
        return
    ratio = statistics.median(r["weft"]["seconds"] / r["PyTorch"]["seconds"] for r in rounds)
    difference = medians["weft"]["accuracy"] - medians["PyTorch"]["accuracy"]
    reached = "as accurate" if difference >= -NOISE else f"NOT as accurate ({100 * difference:+.2f} points)"
    print(f"\nweft takes {ratio:.2f} times as long as PyTorch and is {reached}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--only", choices=["weft", "pytorch"])
    parser.add_argument("--rounds", type=int, default=1, help="with seeds that follow each other")
    parser.add_argument("--epochs", type=float, help="default: the recipe's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another setting of weft's run")
    parser.add_argument("--pytorch-precision", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--images-per-file", type=int, help="use only so many images of each training file")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here")
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not (arguments.data / "test_batch.bin").exists():
        sys.exit(f"cifar10_speedrun: no file '{arguments.data}/test_batch.bin'; give the folder of the binary version "
                 "(cifar-10-binary.tar.gz, unpacked)")
    if arguments.side:
        print(json.dumps(train_pytorch(arguments.data, arguments)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        data = arguments.data.resolve()
        if arguments.images_per_file:
            data = part_of(data, arguments.images_per_file, pathlib.Path(temporary))
        sides = {"weft": train_weft, "PyTorch": train_pytorch_apart}
        rounds = []
        for index in range(arguments.rounds):
            rounds.append({})
            for side, train in sides.items():
                if arguments.only in (None, side.lower()):
                    rounds[-1][side] = train(data, arguments)
                    print(f"{side}: {100 * rounds[-1][side]['accuracy']:.2f} % after {rounds[-1][side]['seconds']:.1f} s",
                          flush=True)
            arguments.seed += 1
    report(rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps({"threads": arguments.threads, "rounds": rounds}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"cifar10_speedrun: {failure}")
