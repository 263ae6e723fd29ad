#!/usr/bin/env python3
"""Does a network learn as well from gradients that ranks make smaller? The same run by each method, as a Markdown table.

Trains on Fashion-MNIST by every method, with compression.tensors = all, on as many ranks as one likes, with the same steps,
seed and learning rate. "exchanged" is what a rank sends for the gradients of a step, 2 (n - 1) / n of the bytes that are reduced
and (n - 1) times those that are gathered, beside that without compression.

  python3 benchmarks/compression.py --out build/compression                       # a small residual network, two epochs
  python3 benchmarks/compression.py --out build/compression --model lenet5 --ranks 4 --seeds 3

Every run is a run directory under --out; what is finished is not done again.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from studies import (ON_FASHION_MNIST, ROOT, describe, fashion_mnist, finish_run, markdown, mpirun, percent,
                     summary_of)

METHODS = {
    "none": [],
    "bf16": ["--set", "compression.method=bf16"],
    "f16": ["--set", "compression.method=f16"],
    "powersgd, rank 4": ["--set", "compression.method=powersgd", "--set", "compression.rank=4"],
    "powersgd, rank 1": ["--set", "compression.method=powersgd", "--set", "compression.rank=1"],
    "top_k, 1 %": ["--set", "compression.method=top_k", "--set", "compression.share=0.01"],
    "one_bit": ["--set", "compression.method=one_bit"],
}


def sent_bytes(arguments, run):
    """Of a rank in a step, by what `weft explain` says of the run."""
    command = [*mpirun(arguments.ranks), arguments.weft, "explain", run, "--json", "--steps", "1", "--without",
               "late_multiply"]
    explained = json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout)
    ranks = arguments.ranks
    return sum((ranks - 1) * one["bytes"] if one["kind"] == "all_gather" else 2 * (ranks - 1) / ranks * one["bytes"]
               for one in explained["collectives"])


def summary(arguments, name, options, seed):
    plain = name.replace(", ", "_").replace(" ", "_").replace("%", "")
    run = arguments.out / f"{arguments.model}-{arguments.ranks}-{arguments.epochs:g}-{plain}-{seed}"
    if summary_of(run) is None:
        command = [arguments.weft, *fashion_mnist(arguments.model, arguments.epochs, seed), "--set", "compression.tensors=all",
                   "--set", "late_multiply=false", *options]
        finish_run(arguments.weft, run, command, mpirun(arguments.ranks))
    return summary_of(run), run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=ON_FASHION_MNIST, default="resnet9")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    rows, plain = [], None
    for name, options in METHODS.items():
        found = [summary(arguments, name, options, seed) for seed in range(1, arguments.seeds + 1)]
        sent = sent_bytes(arguments, found[0][1])
        plain = plain or sent
        rows.append([name, f"{sent / 1e6:.3f} MB", f"{plain / sent:.1f}",
                     f"{statistics.mean(s['train_loss'] for s, _ in found):.4f}",
                     f"{statistics.mean(s['test_loss'] for s, _ in found):.4f}",
                     percent(describe([s["test_accuracy"] for s, _ in found])) if arguments.seeds > 1 else
                     f"{100 * found[0][0]['test_accuracy']:.2f}"])
        print(name, "done", file=sys.stderr, flush=True)
    print(f"{arguments.model}, {arguments.epochs:g} epochs, {arguments.ranks} ranks, {arguments.seeds} seed(s)\n")
    print(markdown(["method", "exchanged", "times less", "train loss", "test loss", "test accuracy %"], rows))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(f"compression: {' '.join(map(str, failure.cmd))} ended with {failure.returncode}:\n{failure.stderr or ''}")
