#!/usr/bin/env python3
"""Does a network learn as well from 32 times the batch, in as many epochs? CIFAR-10 by several optimisers, as a table.

A narrow residual network with batches of 32, and with updates of 32 such batches each: --set accumulate=32 stands in for
32 ranks, batch norm included, which normalises each batch by itself. Rates are those that were the best of a few tried
with seed 1; cosine after a linear rise.

  python3 benchmarks/large_batches.py --data cifar10:DIR --out build/large_batches --seeds 3
  python3 benchmarks/large_batches.py --data cifar10:DIR --out build/large_batches --epochs 4 --only lars --only lamb

Every run is a run directory under --out; what is finished is not done again.
"""
import argparse
import pathlib
import subprocess
import sys

from studies import ROOT, describe, difference_of, finish_run, markdown, percent, summary_of

BATCH, TIMES = 32, 32
# name: (batches per update, epochs of warm-up, keys of the optimiser)
CASES = {
    "sgd": (1, 2, {"name": "sgd", "nesterov": "true", "learning_rate": 0.05}),
    "sgd, linear scaling": (TIMES, 2, {"name": "sgd", "nesterov": "true", "learning_rate": 0.64}),
    "lars": (TIMES, 1, {"name": "lars", "learning_rate": 1.6, "trust_coefficient": 0.01}),
    "lamb": (TIMES, 1, {"name": "lamb", "learning_rate": 0.04}),
}


def command_of(arguments, case, seed):
    accumulate, warmup, optimizer = CASES[case]
    keys = {"model.width": 8, "augment.flip": "random", "augment.crop_padding": 2, "augment.padding": "reflect",
            "loss.label_smoothing": 0.1, "accumulate": accumulate, "schedule.warmup_epochs": warmup,
            "evaluation.every_epochs": 4, "checkpoint.every_epochs": 4,
            **{f"optimizer.{key}": value for key, value in optimizer.items()}}
    return [arguments.weft, "train", "--model", "resnet9", "--data", arguments.data, "--epochs", arguments.epochs,
            "--batch", BATCH, "--precision", arguments.precision, "--threads", arguments.threads, "--seed", seed,
            *(word for key, value in keys.items() for word in ("--set", f"{key}={value}"))]


def accuracies(arguments, case):
    """Of the test data, by seed."""
    found = {}
    for seed in range(1, arguments.seeds + 1):
        run = arguments.out / f"{case.replace(', ', '_').replace(' ', '_')}-{arguments.epochs:g}-{seed}"
        summary = summary_of(run) or finish_run(arguments.weft, run, command_of(arguments, case, seed))
        found[seed] = summary["test_accuracy"]
        print(f"{case}, seed {seed}: {100 * found[seed]:.2f} %", file=sys.stderr, flush=True)
    return found


def difference(values, base):
    """In points, with what two standard errors allow for."""
    row = difference_of(values, base)
    bound = "" if row["bound"] is None else f" ± {100 * row['bound']:.2f}"
    return f"{100 * row['difference']:+.2f}{bound}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="cifar10:DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=float, default=16)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(CASES), help="besides the small batch; repeatable")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    base = None
    rows = []
    for case, (accumulate, warmup, optimizer) in CASES.items():
        if base is not None and arguments.only and case not in arguments.only:
            continue
        values = accuracies(arguments, case)
        base = values if base is None else base
        rows.append([case, str(BATCH * accumulate), f"{optimizer['learning_rate']:g}", f"{warmup:g}",
                     percent(describe(list(values.values()))), "" if values is base else difference(values, base)])
    print(markdown(["optimiser", "batch", "learning rate", "warm-up, epochs", "test accuracy %",
                    "beside the small batch"], rows))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(f"large_batches: {' '.join(map(str, failure.cmd))} ended with {failure.returncode}")
