#!/usr/bin/env python3
"""How good a table's first recipe is: what `weft init` writes, beside the best of twenty settings, as a Markdown table
(and JSON with --json FILE).

  benchmarks/first_recipes.py --tables DIR                     # three tables, three seeds: a quarter of an hour
  benchmarks/first_recipes.py --tables DIR --only optdigits --seeds 1

DIR holds UCI's optdigits.tra, optdigits.tes, adult.data and adult.test. The third table is drawn: twelve classes that
overlap, 12,000 rows, 14 columns. The twenty settings are four networks by five optimisers, some with label smoothing, all
with a cosine schedule. The best of them is the one with the best accuracy on a validation part (a tenth); what is compared
is the accuracy on the test rows, which nothing is chosen by.
"""
import argparse
import itertools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from studies import ROOT, finish_run

NETWORKS = ["64", "256", "64,64", "256,128"]
OPTIMIZERS = [("sgd", 0.03, 0), ("sgd", 0.1, 0.1), ("adamw", 0.001, 0), ("adamw", 0.003, 0.1), ("adamw", 0.01, 0.1)]
EPOCHS = {"optdigits": 40, "adult": 20, "drawn": 60}  # of the twenty
CLASSES, COLUMNS, TRAINING_ROWS, TEST_ROWS = 12, 14, 9600, 2400


def draw_table(folder):
    """Two clusters per class, which overlap: about nine of ten rows can be told apart."""
    source = random.Random(12)
    centres = [[source.gauss(0, 1.1) for _ in range(COLUMNS)] for _ in range(2 * CLASSES)]
    for name, rows in (("training.csv", TRAINING_ROWS), ("test.csv", TEST_ROWS)):
        with open(folder / name, "w", encoding="utf-8") as file:
            file.write(",".join([*(f"x{i}" for i in range(COLUMNS)), "class"]) + "\n")
            for _ in range(rows):
                cluster = source.randrange(2 * CLASSES)
                values = [f"{source.gauss(centre, 1):.3f}" for centre in centres[cluster]]
                file.write(",".join([*values, f"c{cluster // 2}"]) + "\n")


def data_of(task, tables, folder):
    if task == "optdigits":
        return f"csv:{tables}/optdigits.tra?test={tables}/optdigits.tes&skip=1"
    if task == "adult":
        return f"csv:{tables}/adult.data?test={tables}/adult.test"
    draw_table(folder)
    return f"csv:{folder}/training.csv?test={folder}/test.csv"


def best_of_twenty(weft, task, data, folder, seed):
    """The test accuracy, in per cent, of the setting with the best validation accuracy; of several, their mean."""
    results = []
    for number, (network, (optimizer, rate, smoothing)) in enumerate(itertools.product(NETWORKS, OPTIMIZERS)):
        sets = ["model.name=mlp", f"model.hidden={network}", f"optimizer.name={optimizer}",
                f"optimizer.learning_rate={rate}", f"loss.label_smoothing={smoothing}", "schedule.name=cosine",
                "validation=0.1", "batch=128", f"epochs={EPOCHS[task]}",
                *(["optimizer.momentum=0.9"] if optimizer == "sgd" else [])]
        command = ["train", "--data", data, "--seed", seed, *(word for one in sets for word in ("--set", one))]
        summary = finish_run(weft, folder / f"setting-{seed}-{number}", [weft, *command])
        results.append((summary["validation_accuracy"], 100 * summary["test_accuracy"]))
    best = max(validation for validation, _ in results)
    return statistics.mean(test for validation, test in results if validation == best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--tables", required=True, help="the folder of UCI's optdigits and adult")
    parser.add_argument("--only", action="append", choices=EPOCHS, help="a table; default: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    tables = pathlib.Path(arguments.tables).absolute()
    rows = []
    print("| table | seed | `weft init`, % of test | best of 20, % of test | points |\n|---|---|---|---|---|")
    for task in arguments.only or EPOCHS:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            data = data_of(task, tables, folder)
            recipe = folder / "first.toml"
            subprocess.run([arguments.weft, "init", data, "-o", str(recipe)], check=True, stdout=subprocess.DEVNULL)
            for seed in range(1, arguments.seeds + 1):
                command = [arguments.weft, "train", recipe, "--seed", seed]
                first = 100 * finish_run(arguments.weft, folder / f"first-{seed}", command)["test_accuracy"]
                best = best_of_twenty(arguments.weft, task, data, folder, seed)
                rows.append({"table": task, "seed": seed, "init": first, "best_of_20": best})
                print(f"| {task} | {seed} | {first:.2f} | {best:.2f} | {first - best:+.2f} |", flush=True)
        gains = [row["init"] - row["best_of_20"] for row in rows if row["table"] == task]
        print(f"| {task} | median | | | {statistics.median(gains):+.2f} |", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
