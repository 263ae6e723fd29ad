#!/usr/bin/env python3
"""Choosing an augmentation by reinforcement learning, where the truth is known: all 48 policies of a space were trained once.
What each searcher finds within 15 trials, and what its choice is worth on the test data, as Markdown tables.

  cmake -B build -DWEFT_BENCHMARKS=ON && cmake --build build --target benchmark_search
  benchmarks/tuning_augmentation.py                                # what searchers find: a minute
  benchmarks/tuning_augmentation.py --shared DIR --confirm         # trains their choices, and none, on five seeds
  benchmarks/tuning_augmentation.py --shared DIR --table           # trains all policies anew: half an hour

A policy is one of the strengths of five keys of [augment]: flips, shifts, erased squares, brightness, mixing in pairs. Each
trains a small residual network on 10,000 images of CIFAR-10; 10,000 others compare the policies. `--table` writes
benchmarks/tuning_tables/augmentations.csv by `weft tune --searcher grid`. DIR is that of benchmarks/tuning_tasks.py.
"""
import argparse
import csv
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from tuning import weft_losses  # noqa: E402
from tuning_tasks import TABLES, choice, first_of_cifar10, range_words, read_study  # noqa: E402

SPACE = [
    choice("augment.flip", ["none", "random"]),
    choice("augment.crop_padding", ["0", "2", "4"]),
    choice("augment.cutout", ["0", "8"]),
    choice("augment.brightness", ["0", "0.3"]),
    choice("augment.mixup", ["0", "0.2"]),
]
NAMES = [d["name"] for d in SPACE]
NONE = tuple(d["choices"][0] for d in SPACE)
METRIC, TRIALS, SEEDS = "validation_accuracy", 15, 5
TABLE = TABLES / "augmentations.csv"


def make_recipe(shared, folder):
    """20,000 images of CIFAR-10, half of them to compare policies by."""
    folder.mkdir(parents=True, exist_ok=True)
    first_of_cifar10(pathlib.Path(shared) / "cifar10", folder, 20_000)
    recipe = folder / "recipe.toml"
    recipe.write_text(f'data = "cifar10:{folder}"\nepochs = 6\nbatch = 128\nvalidation = 0.5\n\n'
                      '[model]\nname = "resnet9"\nwidth = 8\n\n'
                      '[optimizer]\nname = "sgd"\nlearning_rate = 0.1\nmomentum = 0.9\nnesterov = true\n'
                      'weight_decay = 5e-4\n\n[schedule]\nname = "one_cycle"\n\n'
                      '[evaluation]\nevery_epochs = 6\n\n[checkpoint]\nevery_epochs = 0\n', encoding="utf-8")
    return recipe


def make_table(weft, shared, folder, workers):
    recipe, study = make_recipe(shared, folder), folder / "study"
    words = ["--resume", str(study)] if study.exists() else [
        str(recipe), "--study", str(study), "--searcher", "grid", *range_words(SPACE)]
    policies = 1
    for d in SPACE:
        policies *= len(d["choices"])
    command = [weft, "tune", *words, "--trials", str(policies), "--workers", str(workers), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(TABLE, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, METRIC])
        for trial in sorted(read_study(weft, study)["trials"], key=lambda one: one["trial"]):
            values = (trial["values"][name] for name in NAMES)
            writer.writerow([*(v if isinstance(v, str) else f"{v:g}" for v in values), f"{trial['results'][METRIC]:.5g}"])


def test_accuracy(weft, recipe, folder, policy, seed):
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    words = [word for name, value in zip(NAMES, policy) for word in ("--set", f"{name}={value}")]
    subprocess.run([weft, "train", str(recipe), "--run", str(run), "--seed", str(seed), "--quiet", *words], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))["test_accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default=str(ROOT / "build/benchmark_search"), help="the program benchmark_search")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--searchers", action="append", help="default: ppo, tpe and random")
    parser.add_argument("--table", action="store_true", help="train all policies anew")
    parser.add_argument("--confirm", action="store_true", help="train what the first searcher chose, on the test data")
    parser.add_argument("--shared", help="with --table and --confirm: the folder of the data")
    parser.add_argument("--folder", default="/tmp/weft_tuning_tables/augmentation", help="with these: of data and study")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder).absolute()
    if (arguments.table or arguments.confirm) and not arguments.shared:
        parser.error("--table and --confirm want --shared DIR")
    if arguments.table:
        make_table(arguments.weft, arguments.shared, folder, arguments.workers)
    if not TABLE.exists():
        sys.exit(f"there is no {TABLE}; make it by --table --shared DIR")
    with open(TABLE, newline="", encoding="utf-8") as file:
        truth = {tuple(row[name] for name in NAMES): float(row[METRIC]) for row in csv.DictReader(file)}
    print(f"{len(truth)} policies: validation accuracy {100 * min(truth.values()):.2f} to {100 * max(truth.values()):.2f} %, "
          f"without augmentation {100 * truth[NONE]:.2f} %\n\n| searcher | best of {TRIALS} trials, each of {SEEDS} seeds, % | "
          "median | median rank |\n|---|---|---|---|")
    chosen = {}
    for searcher in arguments.searchers or ["ppo", "tpe", "random"]:
        found = chosen[searcher] = []
        for seed in range(1, SEEDS + 1):
            tried = []

            def loss(point, tried=tried):
                tried.append(tuple(point[name] for name in NAMES))
                return -truth[tried[-1]]

            weft_losses(arguments.server, searcher, seed, SPACE, loss, TRIALS)
            found.append(max(tried, key=truth.get))
        best = [truth[policy] for policy in found]
        ranks = [1 + sum(other > one for other in truth.values()) for one in best]
        print(f"| {searcher} | {', '.join(f'{100 * one:.2f}' for one in best)} | {100 * statistics.median(best):.2f} | "
              f"{statistics.median(ranks)} |", flush=True)
    if not arguments.confirm:
        return 0
    searcher, found = next(iter(chosen.items()))
    recipe = make_recipe(arguments.shared, folder)
    print(f"\n| seed | policy of {searcher} | test accuracy, % | without augmentation, % | difference, points |\n|---|---|---|---|---|")
    differences = []
    for seed, policy in enumerate(found, start=1):
        with_it, without = (test_accuracy(arguments.weft, recipe, folder, one, seed) for one in (policy, NONE))
        differences.append(100 * (with_it - without))
        shown = ", ".join(f"{name.split('.')[1]} {value}" for name, value in zip(NAMES, policy) if value not in ("0", "none"))
        print(f"| {seed} | {shown} | {100 * with_it:.2f} | {100 * without:.2f} | {differences[-1]:+.2f} |", flush=True)
    print(f"\nmedian difference: {statistics.median(differences):+.2f} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())
