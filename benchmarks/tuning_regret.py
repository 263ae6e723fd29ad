#!/usr/bin/env python3
"""weft's searchers beside Optuna's newest on recipes: how far the best of 25 and of 50 trials is from the best there is,
as Markdown tables (and JSON with --json FILE).

  cmake -B build -DWEFT_BENCHMARKS=ON && cmake --build build --target benchmark_search
  benchmarks/tuning_regret.py                          # 20 seeds: a quarter of an hour
  benchmarks/tuning_regret.py --only optdigits --seeds 5
  benchmarks/tuning_regret.py --kept /tmp/regret.jsonl # goes on where it ended: each search that is done has a line there

Both sides ask for one trial at a time, of the same function: extremely randomised trees (Geurts 2006) that were fitted to
the task's table of random trials (benchmarks/tuning_tables, made by benchmarks/tuning_tasks.py). So 20 searches of each
kind take minutes and not days, and all of them meet the same results. How well the trees foretell trials that they have not
seen is printed above the table. Optuna's samplers are those of benchmarks/tuning.py, which also says how Optuna is found.
"""
import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import random
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from peer_python import peer_python  # noqa: E402
from tuning import optuna_losses, quartiles, weft_losses  # noqa: E402
from tuning_tasks import TABLES, TASKS, read_table  # noqa: E402

SEARCHERS = [("weft", "tpe"), ("weft", "gp"), ("optuna", "tpe"), ("optuna", "gp"), ("optuna", "random")]
TRIALS = 50


def features(space, point):
    """Numbers on their own scales, a column per choice; what does not count is in the middle of its range."""
    row = []
    for d in space:
        value = point.get(d["name"])
        if d["kind"] == "choice":
            row += [float(value == c) for c in d["choices"]]
        else:
            scale = math.log if d["log"] else float
            low, high = scale(d["low"]), scale(d["high"])
            row.append(((scale(value) if value is not None else (low + high) / 2) - low) / (high - low))
            if "if" in d:
                row.append(float(value is not None))
    return row


def draw(space, source):
    point = {}
    for d in space:
        if "if" in d and point.get(d["if"]["name"]) not in d["if"]["values"]:
            continue
        if d["kind"] == "choice":
            point[d["name"]] = source.choice(d["choices"])
        elif d["log"]:
            point[d["name"]] = math.exp(source.uniform(math.log(d["low"]), math.log(d["high"])))
        else:
            point[d["name"]] = source.uniform(d["low"], d["high"])
        if d["kind"] == "integer":
            point[d["name"]] = round(point[d["name"]])
    return point


def trees():
    from sklearn.ensemble import ExtraTreesRegressor
    return ExtraTreesRegressor(n_estimators=100, min_samples_leaf=2, random_state=1)


class Surrogate:
    """What a task's trials would give: `least` is the least of it, as far as 50,000 points show."""

    def __init__(self, task, tables):
        self.space = TASKS[task]["space"]
        rows = read_table(task, tables)
        self.trials = len(rows)
        self.inputs = [features(self.space, point) for point, _ in rows]
        self.losses = [loss for _, loss in rows]
        self.model = trees().fit(self.inputs, self.losses)
        source = random.Random(1)
        drawn = [features(self.space, draw(self.space, source)) for _ in range(50_000)]
        self.least = float(min(self.model.predict(drawn + self.inputs)))

    def __call__(self, point):
        return float(self.model.predict([features(self.space, point)])[0])

    def quality(self):
        """The rank correlation of foretold and true losses, over trials that the trees have not seen."""
        from scipy.stats import spearmanr
        from sklearn.model_selection import cross_val_predict
        return float(spearmanr(cross_val_predict(trees(), self.inputs, self.losses, cv=10), self.losses)[0])


_SURROGATES = {}


def search(work):
    task, tables, server, side, searcher, seed = work
    if task not in _SURROGATES:
        _SURROGATES[task] = Surrogate(task, tables)
    surrogate = _SURROGATES[task]
    if side == "weft":
        losses = weft_losses(server, searcher, seed, surrogate.space, surrogate, TRIALS)
    else:
        losses = optuna_losses(searcher, seed, surrogate.space, surrogate, TRIALS)
    assert len(losses) == TRIALS, f"{side} {searcher} made {len(losses)} trials of {task}"
    return task, f"{side} {searcher}", seed, min(losses[:TRIALS // 2]), min(losses)


def read_kept(path):
    """What searches have found that an earlier start of this program made."""
    found = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            task, name, seed, half, end = json.loads(line)
            found[task, name, seed] = (half, end)
    return found


def ranks(values):
    """Of each value among all, the mean of those of equals."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
            for value in values]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default=str(ROOT / "build/benchmark_search"), help="the program benchmark_search")
    parser.add_argument("--tables", type=pathlib.Path, default=TABLES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; repeatable")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kept", type=pathlib.Path, metavar="FILE", help="add each search to this file; read it first")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    import optuna
    tasks = [task for task in arguments.only or TASKS if (arguments.tables / f"{task}.csv").exists()]
    print(f"Optuna {optuna.__version__}; {arguments.seeds} seeds, {TRIALS} trials\n")
    least = {}
    for task in tasks:
        surrogate = Surrogate(task, arguments.tables)
        least[task] = surrogate.least
        print(f"{task}: {surrogate.trials} trials; the trees order unseen ones by {surrogate.quality():.2f} (Spearman)")
    work = [(task, arguments.tables, arguments.server, side, searcher, seed) for task in tasks
            for side, searcher in SEARCHERS for seed in range(1, arguments.seeds + 1)]
    found = read_kept(arguments.kept)
    work = [one for one in work if (one[0], f"{one[3]} {one[4]}", one[5]) not in found]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for task, name, seed, half, end in pool.imap(search, work):
            found[task, name, seed] = (half, end)
            if arguments.kept:
                with open(arguments.kept, "a", encoding="utf-8") as file:
                    file.write(json.dumps([task, name, seed, half, end]) + "\n")
    names = [f"{side} {searcher}" for side, searcher in SEARCHERS]
    for task in tasks:
        least[task] = min([least[task], *(end for (of, _, _), (_, end) in found.items() if of == task)])
    rows, summary = [], {name: {"half": [], "end": []} for name in names}
    for task in tasks:
        for at, part in enumerate(("half", "end")):
            for seed in range(1, arguments.seeds + 1):
                for name, rank in zip(names, ranks([found[task, name, seed][at] for name in names])):
                    summary[name][part].append(rank)
            row = {"task": task, "trials": TRIALS // 2 if part == "half" else TRIALS}
            for name in names:
                row[name] = quartiles([found[task, name, seed][at] - least[task] for seed in range(1, arguments.seeds + 1)])
            rows.append(row)
    print("\nMedian (quartiles) of the regret\n")
    print("| task | trials | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 2))
    for row in rows:
        shown = [f"{row[name][1]:.3g} ({row[name][0]:.2g} to {row[name][2]:.2g})" for name in names]
        print(f"| {row['task']} | {row['trials']} | " + " | ".join(shown) + " |")
    for part in ("half", "end"):
        print(f"| mean rank | {TRIALS // 2 if part == 'half' else TRIALS} | "
              + " | ".join(f"{statistics.mean(summary[name][part]):.2f}" for name in names) + " |")
    print()
    for name, what in (("weft tpe", "weft's TPE"), ("weft gp", "weft's Gaussian process, its default up to 200 trials,")):
        ratios = [row[name][1] / row["optuna tpe"][1] for row in rows
                  if row["trials"] == TRIALS // 2 and row["optuna tpe"][1] > 0]
        if ratios:
            print(f"median regret after {TRIALS // 2} trials, {what} over Optuna's TPE: "
                  f"{statistics.geometric_mean(max(r, 1e-9) for r in ratios):.2f} (geometric mean over tasks)")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # a process per core: more threads only wait for each other
        os.environ.setdefault(variable, "1")
    if importlib.util.find_spec("optuna") is None:  # once more with the Python that has it
        python = peer_python(ROOT / "build/tuning_peer", ROOT / "benchmarks/peer/tuning.txt", "TUNING_PEER")
        os.execv(python, [python, *sys.argv])
    sys.exit(main())
