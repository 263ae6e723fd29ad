#!/usr/bin/env python3
"""How long training takes where other processes want the same cores: weft as it is beside OpenMP's own wait policies.

Each case trains alone, beside one and two processes that compute all the time, and as two runs at once. Each round
runs all policies in turn. A cell shows the median seconds of the whole command, and in brackets the ratio to the better
of `active` and `passive`. "libgomp" is libgomp's default, a spin of some milliseconds, whatever others do.

  benchmarks/shared_machine.py                             # an MLP, lenet5 and resnet9, about ten minutes on two cores
  benchmarks/shared_machine.py --only mlp --rounds 5 --table optdigits.tra --options 'skip=1&header=no'

Without --table, the MLP reads Fashion-MNIST as the others do.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from sides import ROOT

POLICIES = {
    "weft": {},
    "libgomp": {"GOMP_SPINCOUNT": "300000"},
    "active": {"OMP_WAIT_POLICY": "active"},
    "passive": {"OMP_WAIT_POLICY": "passive"},
}
SITUATIONS = {"alone": (0, 1), "1 busy": (1, 1), "2 busy": (2, 1), "two runs": (0, 2)}  # busy processes, runs


def cases(arguments):
    table = f"csv:{arguments.table}?{arguments.options}" if arguments.table else "fashion-mnist"
    epochs = 20 if arguments.table else 1
    return {
        "mlp": ["--model", "mlp", "--data", table, "--epochs", epochs],
        "lenet5": ["--model", "lenet5", "--data", "fashion-mnist", "--max-steps", 400],
        "resnet9": ["--model", "resnet9", "--set", "model.width=16", "--data", "fashion-mnist", "--batch", 64,
                    "--max-steps", 30, "--set", "evaluation.batch=500"],
    }


def seconds_of(weft, options, policy, runs, folder):
    """Of that many runs at once, until the last one ends."""
    environment = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment.update(POLICIES[policy])
    directories = [folder / f"run-{number}" for number in range(runs)]
    begin = time.monotonic()
    started = [subprocess.Popen([str(word) for word in (weft, "train", *options, "--quiet", "--run", directory)],
                                env=environment, stdout=subprocess.DEVNULL) for directory in directories]
    codes = [process.wait() for process in started]
    seconds = time.monotonic() - begin
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    if any(codes):
        raise SystemExit(f"weft train {' '.join(map(str, options))} ended with {codes}")
    return seconds


def measure(arguments, options, folder):
    """{situation: {policy: seconds of each round}}"""
    seconds = {situation: {policy: [] for policy in POLICIES} for situation in SITUATIONS}
    for situation, (busy, runs) in SITUATIONS.items():
        neighbours = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(busy)]
        try:
            for _ in range(arguments.rounds):
                for policy in POLICIES:
                    seconds[situation][policy].append(seconds_of(arguments.weft, options, policy, runs, folder))
        finally:
            for neighbour in neighbours:
                neighbour.kill()
                neighbour.wait()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=ROOT / "build" / "weft", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--table", help="CSV file for the MLP")
    parser.add_argument("--options", default="", help="of the CSV file, as behind a '?'")
    arguments = parser.parse_args()
    print("| case | policy | " + " | ".join(SITUATIONS) + " |\n|---|---|" + "---:|" * len(SITUATIONS))
    with tempfile.TemporaryDirectory() as folder:
        for name, options in cases(arguments).items():
            if arguments.only and name not in arguments.only:
                continue
            seconds = measure(arguments, options, pathlib.Path(folder))
            median = {s: {p: statistics.median(values) for p, values in row.items()} for s, row in seconds.items()}
            for policy in POLICIES:
                cells = [f"{median[s][policy]:.2f} s ({median[s][policy] / min(median[s]['active'], median[s]['passive']):.2f})"
                         for s in SITUATIONS]
                print(f"| {name} | {policy} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
