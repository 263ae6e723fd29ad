#!/usr/bin/env python3
"""Every model beside its PyTorch counterpart, in f32 and bf16: parameters, multiply-adds, training speed. `make bench-zoo`.

Both sides train the same network on the same input, batch and threads, on synthetic data, each in a process of its own,
in turn. PyTorch runs in its best setting for the row: channels-last or contiguous, eager or compiled. The first run on a
processor tries them all, which takes one to three minutes per row; benchmarks/peer_settings.py keeps what won, and later
runs measure only that. A row shows medians over the rounds; its ratio is the median of weft's samples/s over PyTorch's of
the same round. `tools/peer_check.py --parameters` checks that both have as many parameters.

  benchmarks/zoo.py --json zoo.json                         # all models in both precisions: hours at first, then one
  benchmarks/zoo.py --json zoo.json --goes-on               # rows that the file has already are not measured again
  benchmarks/zoo.py --only lenet5 --only mlp --rounds 1 --precision f32
"""
import argparse
import datetime
import json
import os
import pathlib
import sys

from sides import ROOT, Case, SideFailed, compare_speed, describe_machine, human, run_json, size_of

HEADER = "| model | input | batch | precision | parameters | multiply-adds | weft | PyTorch | ratio | lowest-highest | PyTorch's setting |"


def measure(name, classes, precision, arguments):
    shape, batch = size_of(name)
    cost = run_json([arguments.weft, "models", name, "--input", shape, "--classes", classes, "--json"])[0]
    row = {"model": name, "input": shape, "batch": batch, "classes": classes, "precision": precision,
           "parameters": cost["parameters"], "multiply_adds": cost["multiply_adds"]}
    try:
        return {**row, **compare_speed(Case(name, shape, batch, classes), [precision], [precision], arguments)}
    except SideFailed as failure:
        return {**row, "error": str(failure)}


def row_text(row):
    begin = f"| {row['model']} | {row['input']} | {row['batch']} | {row['precision']} | {row['parameters']:,} | {human(row['multiply_adds'])} |"
    if "error" in row:
        return f"{begin} | | **failed** | | {row['error'].splitlines()[-1]} |"
    setting = row["settings"]["PyTorch"].split(", ", 1)[1]
    return (f"{begin} {row['weft']:.1f} | {row['pytorch']:.1f} | **{row['value']:.2f}** | "
            f"{min(row['ratios']):.2f}-{max(row['ratios']):.2f} | {setting} |")


def read_rows(path, machine):
    """Rows of an earlier run on such a machine, by model and precision; those that failed are measured again."""
    if path is None or not path.exists():
        return {}
    report = json.loads(path.read_text())
    same = all(report["machine"][key] == machine[key] for key in ("cpu", "threads", "pytorch"))
    if not same:
        sys.exit(f"zoo: {path} was measured on another machine or beside another PyTorch: {report['machine']}")
    return {(row["model"], row["precision"]): row for row in report["models"] if "error" not in row}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="MODEL", help="a model; repeatable; default: all")
    parser.add_argument("--precision", action="append", choices=["f32", "bf16"], help="repeatable; default: both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=4, help="how long each side measures in a round or a trial")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures here, anew after each row")
    parser.add_argument("--goes-on", action="store_true", help="take the rows of --json that are there")
    arguments = parser.parse_args()
    if arguments.goes_on and not arguments.json:
        parser.error("--goes-on wants --json FILE")
    return arguments


def main():
    arguments = parse_arguments()
    models = {entry["name"]: entry["classes"] for entry in run_json([arguments.weft, "models", "--json"])}
    for name in arguments.only or []:
        if name not in models:
            sys.exit(f"zoo: there is no model '{name}'; there are: {', '.join(models)}")
    machine = describe_machine(arguments)
    known = read_rows(arguments.json, machine) if arguments.goes_on else {}
    print("{cpu}, {threads} threads, {isa}, oneDNN {onednn}, PyTorch {pytorch}; {date}."
          .format(date=datetime.date.today().isoformat(), **machine))
    print(f"{arguments.rounds} rounds of {arguments.seconds:g} s, training, medians of images/s (or sequences/s)\n")
    print(HEADER + "\n|" + "---|" * (HEADER.count("|") - 1), flush=True)
    rows = []
    for name in arguments.only or models:
        for precision in arguments.precision or ["f32", "bf16"]:
            row = known.get((name, precision)) or measure(name, models[name], precision, arguments)
            print(row_text(row), flush=True)
            rows.append(row)
            if arguments.json:
                report = {"machine": machine, "rounds": arguments.rounds, "seconds": arguments.seconds, "models": rows}
                arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    if failed := [f"{row['model']} {row['precision']}" for row in rows if "error" in row]:
        sys.exit(f"zoo: could not be measured: {', '.join(failed)}")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"zoo: {failure}")
