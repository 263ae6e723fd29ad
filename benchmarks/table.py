#!/usr/bin/env python3
"""The table of docs/performance.md: weft beside PyTorch, as Markdown and (--json FILE) JSON. `make bench` calls it.

Both sides get the same network, input, batch and threads, each in a process of its own, and take turns; who begins
alternates from round to round. PyTorch runs in its best setting: channels-last or contiguous, eager or compiled and, where
the row leaves the precision free, f32 or bf16 autocast. Trials find it once per processor (benchmarks/peer_settings.py
keeps it). A row's figures are medians over the rounds, its ratio the median of the ratios of each round.

Memory of a step is the growth of the resident size: in weft over what is resident when the command begins, in PyTorch over
what is resident after `import torch` (glibc's malloc, nothing preloaded). Compile time is that of a process that has never
seen the network.

  benchmarks/table.py                                    # about 20 minutes on two cores
  benchmarks/table.py --rows lenet5,compile --rounds 5
  benchmarks/table.py --cifar10 DIR                      # the CIFAR-10 speed run too: a quarter of an hour more
  benchmarks/table.py --quick                            # one round of a second each: whether it works, no figures to quote

Exits 1 where a row could not be measured. The first benchmark installs PyTorch (benchmarks/peer_python.py).
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from peer_settings import settings
from sides import ROOT, Case, SideFailed, compare_speed, describe_machine, in_turn, pytorch_step, run_json, weft_step

# Of the speed run's accuracy: two deviations of runs that differ in their seed only.
ACCURACY_NOISE = 0.003
RESNET50 = Case("resnet50", "3,128,128", 16, 1000)
LARGE_RESNET50 = Case("resnet50", "3,224,224", 32, 1000)


class Row:
    """What is measured and what is wanted of it: ratios of weft to PyTorch, or seconds; `best`: more or less."""

    def __init__(self, title, measure, not_done, aim, best=max, unit="images/s", costs=(math.inf, math.inf)):
        self.title, self.measure, self.not_done, self.aim, self.best, self.unit = title, measure, not_done, aim, best, unit
        self.costs = costs  # shares of time that may be paid for it: wanted, aim

    def verdict(self, value, time_cost=0.0):
        better = value.__ge__ if self.best is max else value.__le__
        if better(self.aim) and time_cost <= self.costs[1]:
            return "aim"
        return "done" if better(self.not_done) and time_cost <= self.costs[0] else "not done"


def speed_row(case, precisions):
    """Training speed, each side in the best of these precisions."""

    def measure(arguments):
        result = compare_speed(case, precisions, precisions, arguments)
        return {**result, "note": "{weft}; {PyTorch}".format(**result["settings"])}

    return measure


def least_memory(arguments):
    """PyTorch's growth in the setting that needs less; why others do not work."""
    growths, lacking = {}, {}
    for setting in settings(LARGE_RESNET50.shape, ["bf16"]):
        try:
            growths[setting] = pytorch_step(LARGE_RESNET50, arguments, setting,
                                            ("--warm-up", "1", "--steps", "2", "--seconds", "0"))["rss_growth_bytes"]
        except SideFailed as failure:
            lacking[str(setting)] = str(failure).splitlines()[-1]
    if not growths:
        raise SideFailed(f"PyTorch: no setting works: {lacking}")
    least = min(growths, key=growths.get)
    return str(least), growths[least], lacking


def memory_row(arguments):
    name, theirs, lacking = least_memory(arguments)
    ours = weft_step(LARGE_RESNET50, arguments, "bf16")["rss_growth_bytes"]
    return {"weft": ours / 1e6, "pytorch": theirs / 1e6, "ratios": [ours / theirs], "value": ours / theirs,
            "settings": {"PyTorch": name}, "lacking": lacking, "note": f"bf16; {name}"}


def step_within(limit_bytes, arguments, *more):
    return weft_step(LARGE_RESNET50, arguments, "bf16", ("--memory-limit", str(int(limit_bytes)), *more))


def limit_to_keep(limits, arguments):
    """The first of these limits that weft can keep to, or the least that it says it can."""
    least = None
    while True:
        limit = limits.pop(0) if limits else least
        try:
            step_within(limit, arguments, "--plan-only")
            return limit
        except SideFailed as failure:
            found = re.search(r"(needs at least|batches take) ([0-9.]+) ?([kMG])B", str(failure))
            refused = 1.01 * float(found[2]) * {"k": 1e3, "M": 1e6, "G": 1e9}[found[3]] if found else None  # was rounded
            if found is None or refused == limit:
                raise
            least = refused


def within_row(shares, wanted):
    """Memory within the first of these shares of PyTorch's that can be kept to, or the least, and what it takes in time."""
    def measure(arguments):
        name, theirs, lacking = least_memory(arguments)
        free = weft_step(LARGE_RESNET50, arguments, "bf16")
        outside_the_plan = max(0, free["rss_growth_bytes"] - free["planned_total_bytes"])
        limit = limit_to_keep([share * theirs - outside_the_plan for share in shares], arguments)
        rounds = in_turn(arguments.rounds, {"free": lambda: weft_step(LARGE_RESNET50, arguments, "bf16"),
                                            "limited": lambda: step_within(limit, arguments)})
        costs = [r["limited"]["median_step_seconds"] / r["free"]["median_step_seconds"] - 1 for r in rounds]
        growths = [r["limited"]["rss_growth_bytes"] for r in rounds]
        ours, cost = statistics.median(growths), statistics.median(costs)
        return {"weft": ours / 1e6, "pytorch": theirs / 1e6, "ratios": [growth / theirs for growth in growths],
                "value": ours / theirs, "time_cost": cost, "time_costs": costs, "limit_bytes": limit,
                "settings": {"PyTorch": name}, "lacking": lacking,
                "note": f"--memory-limit {limit / 1e6:.0f}MB takes {100 * cost:+.0f} % time{wanted}"}

    return measure


def compile_row(arguments):
    command = [arguments.weft, "bench", *RESNET50.options(arguments.threads), "--plan-only", "--json", "--precision"]
    rounds = in_turn(arguments.rounds, {precision: lambda precision=precision: run_json([*command, precision])
                                        for precision in ("bf16", "f32")})
    seconds = {p: [r[p]["compile_seconds"] for r in rounds] for p in rounds[0]}
    medians = {p: statistics.median(values) for p, values in seconds.items()}
    slower = max(medians, key=medians.get)
    return {"weft": medians[slower], "pytorch": None, "ratios": seconds[slower], "value": medians[slower],
            "seconds": seconds, "note": ", ".join(f"{p} {value:.2f} s" for p, value in medians.items())}


def cifar10_row(arguments):
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, ROOT / "benchmarks/cifar10_speedrun.py", arguments.cifar10, "--weft", arguments.weft,
                   "--threads", arguments.threads, "--rounds", arguments.cifar10_rounds, "--json", f"{temporary}/json"]
        if arguments.quick:
            command += ["--images-per-file", "1024", "--epochs", "1"]
        result = subprocess.run(list(map(str, command)), stdout=sys.stderr)
        if result.returncode != 0:
            raise SideFailed(f"{' '.join(map(str, command))} ended with {result.returncode}")
        rounds = json.loads(pathlib.Path(f"{temporary}/json").read_text())["rounds"]
    ratios = [r["weft"]["seconds"] / r["PyTorch"]["seconds"] for r in rounds]
    median = {side: {key: statistics.median(r[side][key] for r in rounds) for key in ("accuracy", "seconds")}
              for side in ("weft", "PyTorch")}
    missing = median["PyTorch"]["accuracy"] - median["weft"]["accuracy"]
    note = "test accuracy {:.2f} %, {:.2f} %".format(*(100 * m["accuracy"] for m in median.values()))
    if missing > ACCURACY_NOISE and not arguments.quick:
        raise SideFailed(f"weft is not as accurate, so that its time says nothing: {note}")
    return {"weft": median["weft"]["seconds"], "pytorch": median["PyTorch"]["seconds"], "ratios": ratios,
            "value": statistics.median(ratios), "rounds": rounds, "note": note}


ROWS = {
    "resnet50-bf16": Row("ResNet-50 128x128 training, bf16", speed_row(RESNET50, ["bf16"]), 2.2, 3.0),
    "resnet50-f32": Row("ResNet-50 128x128 training, f32", speed_row(RESNET50, ["f32"]), 1.3, 1.5),
    "mobilenet_v2": Row("MobileNet-v2 128x128 training, best precision",
                        speed_row(Case("mobilenet_v2", "3,128,128", 16, 1000), ["bf16", "f32"]), 1.5, 2.5),
    "vit_tiny": Row("ViT-tiny 128x128 training, best precision",
                    speed_row(Case("vit_tiny", "3,128,128", 16, 1000), ["bf16", "f32"]), 1.5, 2.5),
    "lenet5": Row("LeNet-5 on 28x28, batch 64, best precision", speed_row(Case("lenet5", "1,28,28", 64, 10), ["f32", "bf16"]),
                  3, 8),
    "cifar10": Row("CIFAR-10 speed run, time", cifar10_row, 0.5, 0.33, min, "s"),
    "memory": Row("memory, ResNet-50 224x224 batch 32 bf16", memory_row, 0.6, 0.4, min, "MB"),
    "memory-cheap": Row("the same, some normalisations computed twice", within_row((0.595,), ""), 0.6, 0.4, min, "MB"),
    "recompute": Row("the same, activations computed twice", within_row((0.2, 0.3), " (wanted +35 %, aim +25 %)"), 0.3, 0.2,
                     min, "MB", (0.35, 0.25)),
    "compile": Row("plan of ResNet-50 128x128, cold", compile_row, 2, 0.5, min, "s"),
}


class Report:
    """What is printed, and written too where files are named: Markdown as it comes, JSON anew after each row."""

    def __init__(self, arguments, machine):
        self.markdown, self.json, self.lines = arguments.markdown, arguments.json, []
        self.content = {"machine": machine, "rounds": arguments.rounds, "seconds": arguments.seconds,
                        "quick": arguments.quick, "rows": {}}

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)
        if self.markdown:
            self.markdown.write_text("\n".join(self.lines) + "\n")

    def add(self, name, row, result):
        self.content["rows"][name] = {"title": row.title, "unit": row.unit, "not_done": row.not_done, "aim": row.aim,
                                      "less_is_better": row.best is min, **result}
        if self.json:
            self.json.write_text(json.dumps(self.content, indent=1) + "\n")


def row_text(row, result):
    if "error" in result:
        return f"| {row.title} | | | | **failed** | | {row.not_done} | {row.aim} | failed | {result['error'].splitlines()[0]} |"

    def number(value):
        return "-" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"

    value, unit = result["value"], " s" if result["pytorch"] is None else ""
    low, high = min(result["ratios"]), max(result["ratios"])
    return (f"| {row.title} | {number(result['weft'])} | {number(result['pytorch'])} | {row.unit} | **{value:.2f}{unit}** | "
            f"{low:.2f}-{high:.2f} | {row.not_done} | {row.aim} | {result['verdict']} | {result['note']} |")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help=f"with commas; default: all of {','.join(ROWS)}; cifar10 with --cifar10 only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="how long each side measures in a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cifar10", type=pathlib.Path, metavar="DIR", help="the binary files of CIFAR-10")
    parser.add_argument("--cifar10-rounds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a trial: one round, one second, a part of CIFAR-10")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write what is printed here too")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures here, anew after each row")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 1
    names = arguments.rows.split(",") if arguments.rows else [n for n in ROWS if n != "cifar10" or arguments.cifar10]
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"no row '{unknown[0]}'; there are {', '.join(ROWS)}")
    if "cifar10" in names and not arguments.cifar10:
        parser.error("the row cifar10 wants --cifar10 DIR, the folder of the binary files")
    return arguments, names


def main():
    arguments, names = parse_arguments()
    try:
        machine = describe_machine(arguments)
    except SideFailed as failure:
        sys.exit(f"table: {failure}")
    report = Report(arguments, machine)
    report.say("{cpu}, {threads} threads, {isa}, oneDNN {onednn}, PyTorch {pytorch}; {date}, load {load:.1f} before."
               .format(date=datetime.date.today().isoformat(), **machine))
    report.say(f"{arguments.rounds} rounds of {arguments.seconds:g} s"
               f"{': a trial, no figures to quote' if arguments.quick else ''}.\n")
    report.say("| measure | weft | PyTorch | unit | ratio | lowest-highest | wanted | aim | | settings |")
    report.say("|---|---|---|---|---|---|---|---|---|---|")
    failures, lacking = [], {}
    for name in names:
        row = ROWS[name]
        try:
            result = row.measure(arguments)
            result["verdict"] = row.verdict(result["value"], result.get("time_cost", 0.0))
            lacking.update(result.get("lacking", {}))
        except SideFailed as failure:
            result = {"error": str(failure)}
            failures.append(name)
            print(f"table: {name}: {failure}", file=sys.stderr, flush=True)
        report.say(row_text(row, result))
        report.add(name, row, result)
    if lacking:
        report.say("\nNot to be had:\n" + "\n".join(f"- {name}: {why}" for name, why in lacking.items()))
    if failures:
        sys.exit(f"table: could not be measured: {', '.join(failures)}")


if __name__ == "__main__":
    main()
