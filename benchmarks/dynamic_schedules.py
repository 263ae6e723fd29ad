#!/usr/bin/env python3
"""What schedules of batch, image size and momentum save: a recipe as it is, and the same with schedules and fewer epochs, as a
Markdown table (and JSON with --json FILE).

  benchmarks/dynamic_schedules.py                              # resnet9 on Fashion-MNIST: an hour, alone
  benchmarks/dynamic_schedules.py --at-once 2                  # two runs at a time, each on half of the cores
  benchmarks/dynamic_schedules.py --only airbench94 --cifar10 DIR

airbench94 has width 16 here, so that a run takes minutes on two cores. For each seed there are three runs: the recipe, the
schedules, and the recipe with as few epochs as the schedules need, which shows what the schedules add to a shorter run.
Seconds are those of training, without evaluations; accuracies are of the test data, measured once, at the end.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

TASKS = {
    "resnet9": {
        "recipe": "demo",
        "set": [],
        "epochs": 6.4,
        "schedules": ["batch_schedule.boundaries=[4]", "batch_schedule.batches=[128,256]",
                      "batch_schedule.rate_scaling=linear", "momentum_schedule.name=one_cycle"],
    },
    "airbench94": {
        "recipe": "cifar10_speedrun",
        "set": ["model.width=16"],
        "epochs": 7.5,
        "schedules": ["image_schedule.boundaries=[2.5,5]", "image_schedule.sizes=[24,28,32]",
                      "momentum_schedule.name=one_cycle"],
    },
}


def train(weft, task, arguments, folder, name, seed, epochs, schedules):
    run = folder / f"{name}-{seed}"
    sets = [*TASKS[task]["set"], "evaluation.every_epochs=0", "checkpoint.every_epochs=0", *schedules]
    if epochs is not None:
        sets.append(f"epochs={epochs:g}")
    data = ["--data", f"cifar10:{pathlib.Path(arguments.cifar10).absolute()}"] if arguments.cifar10 and task == "airbench94" else []
    threads = max(1, len(os.sched_getaffinity(0)) // arguments.at_once)
    subprocess.run([weft, "train", TASKS[task]["recipe"], *data, "--run", str(run), "--seed", str(seed), "--quiet",
                    "--threads", str(threads),
                    *(word for one in sets for word in ("--set", one))], check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return {"epochs": summary["epochs"], "seconds": summary["train_seconds"], "accuracy": summary["test_accuracy"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; default: resnet9")
    parser.add_argument("--cifar10", help="the folder of CIFAR-10's binary files, for airbench94")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-shorter", action="store_true", help="leave the third run away")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="runs at a time, which share the cores")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    rows = []
    print("| task | seed | | epochs | seconds | test accuracy, % |\n|---|---|---|---|---|---|")
    for task in arguments.only or ["resnet9"]:
        own = TASKS[task]
        sides = {"recipe": (None, []), "schedules": (own["epochs"], own["schedules"]), "shorter": (own["epochs"], [])}
        if arguments.without_shorter:
            del sides["shorter"]
        kinds = [(seed, side) for seed in range(1, arguments.seeds + 1) for side in sides]
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
            runs = [pool.submit(train, arguments.weft, task, arguments, pathlib.Path(name), side, seed, *sides[side])
                    for seed, side in kinds]
            found = {}
            for kind, run in zip(kinds, runs):
                one = found[kind] = run.result()
                print(f"| {task} | {kind[0]} | {kind[1]} | {one['epochs']:g} | {one['seconds']:.1f} | "
                      f"{100 * one['accuracy']:.2f} |", flush=True)
        per_seed = [{side: found[seed, side] for side in sides} for seed in range(1, arguments.seeds + 1)]
        rows += [{"task": task, "seed": seed, **one} for seed, one in enumerate(per_seed, 1)]
        gains = {side: statistics.mean(100 * (one["schedules"]["accuracy"] - one[side]["accuracy"]) for one in per_seed)
                 for side in sides if side != "schedules"}
        ratio = statistics.median(one["schedules"]["seconds"] / one["recipe"]["seconds"] for one in per_seed)
        print(f"\n{task}: {per_seed[0]['schedules']['epochs'] / per_seed[0]['recipe']['epochs']:.2f} of the epochs, "
              f"{ratio:.2f} of the seconds (median), "
              + "; ".join(f"{gain:+.2f} points over the {side} (mean)" for side, gain in gains.items()) + "\n")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
