#!/usr/bin/env python3
"""Every model beside its PyTorch counterpart: parameters, multiply-adds, training speed, as a Markdown table.

Each round runs weft, then PyTorch in channels-last, then PyTorch in contiguous format, each in a process of its own,
with the same network, input, batch and thread count on synthetic data (benchmarks/training_speed.py does the same for
few models and more rounds). A row shows medians over the rounds; its ratio is the median of weft's images/s over those
of the faster PyTorch format of the same round. `tools/peer_check.py --parameters` checks that both have as many
parameters.

  /usr/bin/python3 benchmarks/zoo.py --json zoo.json                 # all models, about half an hour on two cores
  /usr/bin/python3 benchmarks/zoo.py --only lenet5 --only mlp --rounds 1

PyTorch is Debian's python3-torch; install libopenblas0-openmp too, or its matrix products run on the reference BLAS.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

from sides import ROOT, Case, SideFailed, human, run_json, run_round, size_of


def measure(name, classes, arguments):
    shape, batch = size_of(name)
    cost = run_json([arguments.weft, "models", name, "--input", shape, "--classes", classes, "--json"])[0]
    case = Case(name, shape, batch, classes)
    rounds = [run_round(case, arguments) for _ in range(arguments.rounds)]
    ratios = [r["weft"] / max(speed for key, speed in r.items() if key != "weft") for r in rounds]
    return {
        "model": name,
        "input": shape,
        "batch": batch,
        "classes": classes,
        "parameters": cost["parameters"],
        "multiply_adds": cost["multiply_adds"],
        "images_per_second": {k: statistics.median(r[k] for r in rounds) for k in rounds[0]},
        "ratio": statistics.median(ratios),
        "rounds": rounds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="MODEL", help="a model; repeatable; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of both sides")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=5, help="how long weft measures in a round")
    parser.add_argument("--peer-steps", type=int, default=6, help="steps that PyTorch measures in a round")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here, anew after each model")
    arguments = parser.parse_args()
    models = {entry["name"]: entry["classes"] for entry in run_json([arguments.weft, "models", "--json"])}
    for name in arguments.only or []:
        if name not in models:
            sys.exit(f"zoo: there is no model '{name}'; there are: {', '.join(models)}")
    print(f"{arguments.precision} training, {arguments.threads} threads, {arguments.rounds} rounds, "
          "medians of images/s (or sequences/s)\n")
    print("| model | input | batch | parameters | multiply-adds | weft | PyTorch channels-last | PyTorch contiguous | ratio |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    rows = []
    for name in arguments.only or models:
        row = measure(name, models[name], arguments)
        speeds = row["images_per_second"]
        shown = [f"{speeds[k]:.1f}" if k in speeds else "-" for k in ("weft", "channels-last", "contiguous")]
        print(
            f"| {name} | {row['input']} | {row['batch']} | {row['parameters']:,} | {human(row['multiply_adds'])} | "
            f"{' | '.join(shown)} | **{row['ratio']:.2f}** |",
            flush=True,
        )
        rows.append(row)
        if arguments.json:
            report = {"precision": arguments.precision, "threads": arguments.threads, "rounds": arguments.rounds, "models": rows}
            pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"zoo: {failure}")
