#!/usr/bin/env python3
"""Is a network trained in bf16 (or f16) as good as one trained in f32? Several seeds of each, as a Markdown table.

Trains one recipe in each precision with each seed and compares the mean test accuracy with that of f32: as good means
a difference within two standard errors of the difference of the means. The seed decides weights, order and augmentation,
so the difference of the pairs of one seed is shown too.

  python3 benchmarks/precision_accuracy.py fashion --out build/precision                  # five seeds in f32 and in bf16
  python3 benchmarks/precision_accuracy.py cifar10:DIR --out build/precision --seeds 3    # the standard binary files
  python3 benchmarks/precision_accuracy.py fashion --out build/precision --precisions f32,bf16,f16 --epochs 2
  python3 benchmarks/precision_accuracy.py fashion --out build/precision --print          # what is there already

Every run is a run directory under --out. What was interrupted goes on where it was, what is finished is not done again:
call it again with more seeds, or until it is done. Exits 1 where a precision is worse than f32 by more than that. The
same numbers are in --out/NAME.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from studies import ROOT, describe, difference_of, finish_run, markdown, percent, summary_of

CASES = {
    # ResNet-9 in half its usual width: some minutes for a run on two cores.
    "fashion": {"data": "fashion-mnist", "epochs": 6, "batch": 256, "options": [
        "--model", "resnet9", "--set", "model.width=16", "--set", "optimizer.learning_rate=0.2", "--set", "optimizer.nesterov=true",
        "--set", "schedule.name=one_cycle", "--set", "loss.label_smoothing=0.1", "--set", "augment.flip=random"]},
    "cifar10": {"data": "cifar10:{}", "epochs": 6, "batch": 256, "options": [
        "--model", "resnet9", "--set", "model.width=16", "--set", "optimizer.learning_rate=0.2", "--set", "optimizer.nesterov=true",
        "--set", "schedule.name=one_cycle", "--set", "loss.label_smoothing=0.1", "--set", "augment.flip=random",
        "--set", "augment.crop_padding=4", "--set", "augment.padding=reflect"]},
}


def command_of(arguments, case, data, precision, seed):
    epochs, batch = arguments.epochs or case["epochs"], arguments.batch or case["batch"]
    command = [arguments.weft, "train", "--data", data, "--epochs", str(epochs), "--batch", str(batch), "--seed", str(seed),
               "--precision", precision, *case["options"]]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    for setting in arguments.set:
        command += ["--set", setting]
    return command


def compare(results):
    """Each precision beside f32: {precision: {mean, deviation, difference, bound, as_good, ...}}."""
    report = {}
    accuracies = {precision: {seed: run["test_accuracy"] for seed, run in runs.items()} for precision, runs in results.items()}
    for precision, runs in results.items():
        if not runs:
            continue
        row = describe(list(accuracies[precision].values()))
        row["seconds"] = statistics.mean(run["train_seconds"] for run in runs.values())
        row["skipped_steps"] = sum(run.get("skipped_steps", 0) for run in runs.values())
        report[precision] = row
        if precision == "f32" or not accuracies.get("f32"):
            continue
        row.update(difference_of(accuracies[precision], accuracies["f32"]))
        row["as_good"] = None if row["bound"] is None else row["difference"] >= -row["bound"]
    return report


def to_markdown(name, report):
    rows = []
    for precision, row in report.items():
        cells = ["", "", ""]
        if "difference" in row:
            cells = [f"{100 * row['difference']:+.2f}", "" if row["bound"] is None else f"{100 * row['bound']:.2f}",
                     percent(row["paired"], "+") if row["paired"] else ""]
        rows.append([precision, str(row["runs"]), percent(row) + " %", *cells, f"{row['seconds']:.0f}"])
    return markdown([name, "runs", "test accuracy", "difference from f32", "two standard errors", "of pairs", "s/run"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", help="fashion, or cifar10:DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the run directories")
    parser.add_argument("--precisions", default="f32,bf16", help="of f32, bf16 and f16; default f32,bf16")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=float, help="default: the case's own")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--set", action="append", default=[], help="any key of the recipe, for all runs")
    parser.add_argument("--print", action="store_true", help="train nothing, show what is there")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    name, _, directory = arguments.case.partition(":")
    if name not in CASES or (name == "cifar10") != bool(directory):
        sys.exit(f"'{arguments.case}' is no case; give fashion, or cifar10:DIR with the standard binary files in DIR")
    precisions = arguments.precisions.split(",")
    if unknown := [precision for precision in precisions if precision not in ("f32", "bf16", "f16")]:
        sys.exit(f"--precisions: '{unknown[0]}' is none of f32, bf16, f16")
    precisions.sort(key=lambda precision: precision != "f32")  # what all are compared with comes first
    case = CASES[name]
    data = case["data"].format(os.path.abspath(directory))
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = {precision: {} for precision in precisions}
    # Seed by seed: what there is when it is interrupted can be compared.
    for seed in range(1, arguments.seeds + 1):
        for precision in precisions:
            run = arguments.out / f"{name}-{precision}-seed{seed}"
            summary = summary_of(run)
            if summary is None and not arguments.print:
                summary = finish_run(arguments.weft, run, command_of(arguments, case, data, precision, seed))
                print(f"{precision}, seed {seed}: {100 * summary['test_accuracy']:.2f} %, {summary['train_seconds']:.0f} s", flush=True)
            if summary is not None:
                results[precision][seed] = summary
    report = compare(results)
    if not report:
        sys.exit(f"there are no finished runs in '{arguments.out}'")
    path = arguments.out / f"{name}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{to_markdown(name, report)}")
    worse = [precision for precision, row in report.items() if row.get("as_good") is False]
    for precision in worse:
        print(f"{precision} is worse than f32 by more than the noise", file=sys.stderr)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))} ended with exit code {error.returncode}; call this again to go on")
