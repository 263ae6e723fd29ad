#!/usr/bin/env python3
"""Training speed of weft and PyTorch, pair by pair in one run, as a Markdown table (and JSON with --json FILE).

Each round runs weft, then PyTorch in channels-last, then PyTorch in contiguous format, each in a process of its own,
with the same model, input, batch and thread count on synthetic data. A row's ratio is the median over the rounds of
weft's images/s over those of the faster PyTorch format of the same round: above 1, weft is faster.

  /usr/bin/python3 benchmarks/training_speed.py --rounds 5
  /usr/bin/python3 benchmarks/training_speed.py --only resnet50 --rounds 9 --threads 1
  /usr/bin/python3 benchmarks/training_speed.py --only resnet50 --precision bf16   # PyTorch in bf16 autocast

PyTorch is Debian's python3-torch; install libopenblas0-openmp too, or its matrix products run on the reference BLAS.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

from sides import ROOT, Case, SideFailed, run_round

CASES = {case.model: case for case in (
    Case("resnet50", "3,128,128", 16, 1000),
    Case("resnet9", "1,28,28", 256, 10),
    Case("mobilenet_v2", "3,128,128", 16, 1000),
    Case("vit_tiny", "3,128,128", 16, 1000),
    Case("resnet18", "3,32,32", 128, 10),
    Case("lenet5", "1,28,28", 64, 10),
    Case("mlp", "1,28,28", 128, 10),
    Case("transformer_lm", "128", 8, 256),
)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, help="a case; repeatable; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32", help="of both sides")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=8, help="how long weft measures in a round")
    parser.add_argument("--peer-steps", type=int, default=12, help="steps that PyTorch measures in a round")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    report = []
    print(f"{arguments.precision} training, {arguments.threads} threads, {arguments.rounds} rounds, "
          "medians of images/s (or sequences/s)\n")
    print("| model | input | batch | weft | PyTorch channels-last | PyTorch contiguous | ratio | lowest | highest |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.only or CASES:
        rounds = [run_round(CASES[name], arguments) for _ in range(arguments.rounds)]
        ratios = sorted(r["weft"] / max(v for k, v in r.items() if k != "weft") for r in rounds)
        medians = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
        shown = [f"{medians[k]:.1f}" if k in medians else "-" for k in ("weft", "channels-last", "contiguous")]
        case = CASES[name]
        print(f"| {case.model} | {case.shape} | {case.batch} | {' | '.join(shown)} | **{statistics.median(ratios):.2f}** | "
              f"{ratios[0]:.2f} | {ratios[-1]:.2f} |", flush=True)
        report.append({"case": name, "precision": arguments.precision, "threads": arguments.threads, "rounds": rounds,
                       "ratios": ratios, "median_ratio": statistics.median(ratios)})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"training_speed: {failure}")
