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
import os
import pathlib
import statistics
import subprocess
import sys

from studies import ROOT, markdown, percent, describe, summary_of

OPTIONS = {
    "resnet9": ["--set", "model.width=16", "--set", "optimizer.learning_rate=0.2", "--set", "optimizer.nesterov=true",
                "--batch", "256"],
    "lenet5": ["--set", "optimizer.learning_rate=0.05", "--batch", "128"],
    "mlp": ["--set", "optimizer.learning_rate=0.05", "--batch", "128"],
}
METHODS = {
    "none": [],
    "bf16": ["--set", "compression.method=bf16"],
    "powersgd, rank 4": ["--set", "compression.method=powersgd", "--set", "compression.rank=4"],
    "powersgd, rank 1": ["--set", "compression.method=powersgd", "--set", "compression.rank=1"],
    "top_k, 1 %": ["--set", "compression.method=top_k", "--set", "compression.share=0.01"],
    "one_bit": ["--set", "compression.method=one_bit"],
}


def mpirun(arguments, *words):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = ["mpirun", "--oversubscribe", "-n", str(arguments.ranks), arguments.weft, *words]
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"compression: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def sent_bytes(arguments, run):
    """Of a rank in a step, by what `weft explain` says of the run."""
    explained = json.loads(mpirun(arguments, "explain", run, "--json", "--steps", "1", "--without", "late_multiply"))
    ranks = arguments.ranks
    return sum((ranks - 1) * one["bytes"] if one["kind"] == "all_gather" else 2 * (ranks - 1) / ranks * one["bytes"]
               for one in explained["collectives"])


def summary(arguments, name, options, seed):
    run = arguments.out / f"{arguments.model}-{arguments.ranks}-{arguments.epochs:g}-{name.replace(', ', '_').replace(' ', '_').replace('%', '')}-{seed}"
    if summary_of(run) is None:
        words = ["--resume", run] if run.exists() else [
            "--model", arguments.model, "--data", "fashion-mnist", "--epochs", arguments.epochs, "--seed", seed,
            *OPTIONS[arguments.model], "--set", "schedule.name=one_cycle", "--set", "compression.tensors=all",
            "--set", "late_multiply=false", *options, "--run", run]
        mpirun(arguments, "train", *words, "--quiet")
    return summary_of(run), run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=OPTIONS, default="resnet9")
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
    main()
