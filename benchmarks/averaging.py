#!/usr/bin/env python3
"""Ranks that average their weights now and then beside ranks that exchange every gradient, over slow links: what a step sends
and takes, and what is learned in as many epochs, as a Markdown table.

Hosts are network namespaces of this machine whose links tools/shaped_links.sh shapes; a rank in each. Trains a small model on
Fashion-MNIST by every method with the same steps, seeds and learning rates. "sent" is what a host's link has carried over the
whole run, by its counter, per step. "seconds" is the time of the steps and of the means between them, per step. As root.

  python3 benchmarks/averaging.py --out build/averaging                                 # lenet5, five epochs, 100 Mbit/s
  python3 benchmarks/averaging.py --out build/averaging --rate 1gbit --hosts 4 --seeds 3

Every run is a run directory under --out; what is finished is not done again.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys

from studies import ON_FASHION_MNIST, ROOT, describe, fashion_mnist, finish_counted_run, markdown, percent

LINKS = str(ROOT / "tools/shaped_links.sh")
METHODS = {
    "every gradient": [],
    "mean of 4 steps": ["averaging.period=4"],
    "mean of 16 steps": ["averaging.period=16"],
    "mean of 64 steps": ["averaging.period=64"],
    "64 at first, adaptive": ["averaging.period=64", "averaging.adaptive=true"],
    "16, slow momentum 0.5": ["averaging.period=16", "averaging.slow_momentum=0.5"],
    "64, slow momentum 0.5": ["averaging.period=64", "averaging.slow_momentum=0.5"],
}


def result_of(arguments, name, settings, seed):
    """What became of one run, and what it sent."""
    plain = name.replace(", ", "_").replace(" ", "_")
    run = arguments.out / f"{arguments.model}-{arguments.hosts}-{arguments.rate}-{arguments.epochs:g}-{plain}-{seed}"
    command = [arguments.weft, *fashion_mnist(arguments.model, arguments.epochs, seed), "--threads", arguments.threads, "--set",
               f"cluster={arguments.out / 'cluster.toml'}"]
    for setting in settings:
        command += ["--set", setting]
    return finish_counted_run(arguments.weft, run, command, arguments.hosts)


def row_of(name, results, plain):
    def per_step(results, key):
        return statistics.median(one[key] / one["steps"] for one in results)
    sent, seconds = per_step(results, "sent_bytes"), per_step(results, "step_seconds")
    accuracies = [one["test_accuracy"] for one in results]
    return [name, f"{sent / 1e3:.1f} KB", f"{per_step(plain, 'sent_bytes') / sent:.1f}", f"{1e3 * seconds:.2f} ms",
            f"**{per_step(plain, 'step_seconds') / seconds:.2f}**", f"{statistics.mean(one['train_loss'] for one in results):.4f}",
            f"{statistics.mean(one['test_loss'] for one in results):.4f}",
            percent(describe(accuracies)) if len(accuracies) > 1 else f"{100 * accuracies[0]:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--model", choices=ON_FASHION_MNIST, default="lenet5")
    parser.add_argument("--epochs", type=float, default=5)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", default="100mbit", help="of each host's link, such as 1gbit")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("LINKS_NAME", "averaging")
    subprocess.run([LINKS, "up", str(arguments.hosts), arguments.rate], check=True)
    try:
        # Once for all, so that all plan for the same links.
        subprocess.run([LINKS, "run", arguments.weft, "cluster", "probe", "--output", arguments.out / "cluster.toml"], check=True,
                       stdout=subprocess.DEVNULL)
        results = {}
        for name, settings in METHODS.items():
            results[name] = [result_of(arguments, name, settings, seed) for seed in range(1, arguments.seeds + 1)]
            print(name, "done", file=sys.stderr, flush=True)
    finally:
        subprocess.run([LINKS, "down"], check=False)
    plain = results[next(iter(METHODS))]
    print(f"{arguments.model}, {arguments.epochs:g} epochs of {plain[0]['steps'] / arguments.epochs:.0f} steps, {arguments.hosts} hosts "
          f"with links of {arguments.rate}, {arguments.seeds} seed(s)\n")
    print(markdown(["exchanged", "sent per step", "times less", "seconds per step", "times as fast", "train loss", "test loss",
                    "test accuracy %"], [row_of(name, found, plain) for name, found in results.items()]))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failure:
        sys.exit(f"averaging: {' '.join(map(str, failure.cmd))} ended with {failure.returncode}")
