#!/usr/bin/env python3
"""Choosing a network by reinforcement learning, where the truth is known: all 500 networks of a space were trained once. In
how many of the seeds a search finds one of the five best within 50 trials, as a Markdown table.

  cmake -B build -DWEFT_BENCHMARKS=ON && cmake --build build --target benchmark_search
  benchmarks/tuning_networks.py                                # a minute
  benchmarks/tuning_networks.py --shared DIR --table           # trains all of them anew: half an hour

The space is of language models over the characters of a part of tinyshakespeare, trained for one epoch: layers, heads, width
and dropout. `--table` writes benchmarks/tuning_tables/networks.csv by `weft tune --searcher grid`. DIR is that of
benchmarks/tuning_tasks.py. By chance a search of 50 of 500 meets one of the five best in 41 % of the cases.
"""
import argparse
import csv
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from tuning import weft_losses  # noqa: E402
from tuning_tasks import TABLES, choice, range_words, read_study  # noqa: E402

SPACE = [
    choice("model.layers", ["1", "2", "3", "4", "5"]),
    choice("model.heads", ["1", "2", "4", "8"]),
    choice("model.width", ["16", "32", "48", "64", "96"]),
    choice("model.dropout", ["0", "0.05", "0.1", "0.2", "0.3"]),
]
NAMES = [d["name"] for d in SPACE]
METRIC, TRIALS, BEST = "validation_loss", 50, 5


def make_table(weft, shared, folder, workers):
    folder.mkdir(parents=True, exist_ok=True)
    text = (pathlib.Path(shared) / "text/tinyshakespeare.txt").read_text(encoding="utf-8")
    (folder / "part.txt").write_text(text[:100_000], encoding="utf-8")
    recipe = folder / "recipe.toml"
    recipe.write_text(f'data = "text:{folder}/part.txt?length=64"\nepochs = 1\nbatch = 16\nvalidation = 0.1\n\n'
                      '[model]\nname = "transformer_lm"\n\n[optimizer]\nname = "adamw"\nlearning_rate = 0.003\n',
                      encoding="utf-8")
    study = folder / "study"
    words = ["--resume", str(study)] if study.exists() else [
        str(recipe), "--study", str(study), "--searcher", "grid",
        *range_words(SPACE)]
    command = [weft, "tune", *words, "--trials", "500", "--workers", str(workers), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with open(TABLES / "networks.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, METRIC])
        for trial in sorted(read_study(weft, study)["trials"], key=lambda one: one["trial"]):
            writer.writerow([*(trial["values"][name] for name in NAMES), f"{trial['results'][METRIC]:.6g}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default=str(ROOT / "build/benchmark_search"), help="the program benchmark_search")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1, help="the settings of ppo were chosen on seeds 1 to 40")
    parser.add_argument("--searchers", action="append", help="default: ppo, tpe and random")
    parser.add_argument("--table", action="store_true", help="train all networks anew")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--shared", help="with --table: the folder of the data")
    parser.add_argument("--folder", default="/tmp/weft_tuning_tables/networks", help="with --table: of the study")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.table:
        make_table(arguments.weft, arguments.shared, pathlib.Path(arguments.folder).absolute(), arguments.workers)
    if not (TABLES / "networks.csv").exists():
        sys.exit(f"there is no {TABLES / 'networks.csv'}; make it by --table --shared DIR")
    with open(TABLES / "networks.csv", newline="", encoding="utf-8") as file:
        truth = {tuple(row[name] for name in NAMES): float(row[METRIC]) for row in csv.DictReader(file)}
    bound = sorted(truth.values())[BEST - 1]
    print(f"{len(truth)} networks: validation loss {min(truth.values()):.4f} to {max(truth.values()):.4f}, the five best to "
          f"{bound:.4f}\n\n| searcher | one of the five best within {TRIALS} trials | median rank of the best |\n|---|---|---|")
    for searcher in arguments.searchers or ["ppo", "tpe", "random"]:
        hits, places = 0, []
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            losses = weft_losses(arguments.server, searcher, seed, SPACE,
                                 lambda point: truth[tuple(point[name] for name in NAMES)], TRIALS)
            hits += min(losses) <= bound
            places.append(1 + sum(loss < min(losses) for loss in truth.values()))
        print(f"| {searcher} | {hits} of {arguments.seeds} | {sorted(places)[len(places) // 2]} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
