#!/usr/bin/env python3
"""What schedules of batch, image size and momentum save: a recipe as it is, and the same with schedules and fewer epochs, as a
Markdown table (and JSON with --json FILE).

  benchmarks/dynamic_schedules.py                              # resnet9 on Fashion-MNIST: half an hour, alone
  benchmarks/dynamic_schedules.py --only airbench94 --cifar10 DIR

For each seed three runs follow each other: the recipe, the recipe with as few epochs as the schedules need, and the
schedules. So the second one shows what the schedules add to a shorter run. Seconds are those of training, without
evaluations; accuracies are of the test data, measured once, at the end.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

TASKS = {
    "resnet9": {
        "recipe": "demo",
        "epochs": 6,
        "schedules": ["batch_schedule.boundaries=[2,4]", "batch_schedule.batches=[128,256,256]",
                      "image_schedule.boundaries=[2,4]", "image_schedule.sizes=[20,24,28]",
                      "momentum_schedule.name=one_cycle"],
    },
    "airbench94": {
        "recipe": "cifar10_speedrun",
        "epochs": 7.5,
        "schedules": ["image_schedule.boundaries=[2.5,5]", "image_schedule.sizes=[24,28,32]",
                      "momentum_schedule.name=one_cycle"],
    },
}


def train(weft, task, arguments, folder, name, seed, epochs, schedules):
    run = folder / f"{name}-{seed}"
    sets = ["evaluation.every_epochs=0", "checkpoint.every_epochs=0", *schedules]
    if epochs is not None:
        sets.append(f"epochs={epochs:g}")
    data = ["--data", f"cifar10:{pathlib.Path(arguments.cifar10).absolute()}"] if arguments.cifar10 and task == "airbench94" else []
    subprocess.run([weft, "train", TASKS[task]["recipe"], *data, "--run", str(run), "--seed", str(seed), "--quiet",
                    *(word for one in sets for word in ("--set", one))], check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return {"epochs": summary["epochs"], "seconds": summary["train_seconds"], "accuracy": summary["test_accuracy"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; default: resnet9")
    parser.add_argument("--cifar10", help="the folder of CIFAR-10's binary files, for airbench94")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    rows = []
    print("| task | seed | | epochs | seconds | test accuracy, % |\n|---|---|---|---|---|---|")
    for task in arguments.only or ["resnet9"]:
        ratios, gains = [], []
        with tempfile.TemporaryDirectory() as name:
            for seed in range(1, arguments.seeds + 1):
                sides = {}
                for side, epochs, schedules in (("recipe", None, []), ("shorter", TASKS[task]["epochs"], []),
                                                ("schedules", TASKS[task]["epochs"], TASKS[task]["schedules"])):
                    sides[side] = train(arguments.weft, task, arguments, pathlib.Path(name), side, seed, epochs, schedules)
                    one = sides[side]
                    print(f"| {task} | {seed} | {side} | {one['epochs']:g} | {one['seconds']:.1f} | "
                          f"{100 * one['accuracy']:.2f} |", flush=True)
                rows.append({"task": task, "seed": seed, **sides})
                ratios.append(sides["schedules"]["seconds"] / sides["recipe"]["seconds"])
                gains.append(100 * (sides["schedules"]["accuracy"] - sides["recipe"]["accuracy"]))
        print(f"\n{task}: {rows[-1]['schedules']['epochs'] / rows[-1]['recipe']['epochs']:.2f} of the epochs, "
              f"{statistics.median(ratios):.2f} of the seconds, {statistics.mean(gains):+.2f} points (mean)\n")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
