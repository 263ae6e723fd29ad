#!/usr/bin/env python3
"""Training speed of weft and PyTorch, pair by pair in one run, as a Markdown table (and JSON with --json FILE).

As benchmarks/zoo.py measures a row, for few models, in the sizes of docs/performance.md, with more rounds. A row's ratio is
the median over the rounds of weft's images/s over PyTorch's at its best: above 1, weft is faster.

  benchmarks/training_speed.py --rounds 5
  benchmarks/training_speed.py --only resnet50 --rounds 9 --threads 1
  benchmarks/training_speed.py --only resnet50 --precision bf16   # PyTorch in bf16 autocast
"""
import argparse
import json
import os
import pathlib
import sys

from sides import ROOT, Case, SideFailed, compare_speed

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
    parser.add_argument("--seconds", type=float, default=8, help="how long each side measures in a round")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    report = []
    print(f"{arguments.precision} training, {arguments.threads} threads, {arguments.rounds} rounds, "
          "medians of images/s (or sequences/s)\n")
    print("| model | input | batch | weft | PyTorch | ratio | lowest | highest | PyTorch's setting |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.only or CASES:
        case = CASES[name]
        row = compare_speed(case, [arguments.precision], [arguments.precision], arguments)
        print(f"| {name} | {case.shape} | {case.batch} | {row['weft']:.1f} | {row['pytorch']:.1f} | **{row['value']:.2f}** | "
              f"{min(row['ratios']):.2f} | {max(row['ratios']):.2f} | {row['settings']['PyTorch']} |", flush=True)
        report.append({"case": name, "precision": arguments.precision, "threads": arguments.threads, **row})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"training_speed: {failure}")
