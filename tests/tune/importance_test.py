#!/usr/bin/env python3
"""`weft tune show --importance` beside Optuna's FanovaImportanceEvaluator on the same trials: the same order of keys, and
shares within 0.1. Optuna sees each key by its place in the range, since it takes no logarithms itself.

Usage: importance_test.py WEFT    Exits 77 where Optuna or scikit-learn is absent: name a Python that has them by
TUNING_PEER (benchmarks/tuning.py makes one in build/tuning_peer).
"""
import importlib.util
import json
import math
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import warnings

from campaign import write_recipe

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    import optuna
    if importlib.util.find_spec("sklearn") is None:  # which Optuna's importances want
        raise ImportError("sklearn")
except ImportError:
    peers = [os.environ.get("TUNING_PEER"), ROOT / "build/tuning_peer/bin/python3"]
    peers = [str(peer) for peer in peers if peer and pathlib.Path(peer).exists()]
    if not peers or os.environ.get("WEFT_TRIED_PEER"):
        print("skipped: Optuna or scikit-learn is not installed; set TUNING_PEER to a Python that has them")
        sys.exit(77)
    os.execve(peers[0], [peers[0], *sys.argv], dict(os.environ, WEFT_TRIED_PEER="1"))

KEYS = {"optimizer.learning_rate": ("log", 1e-4, 1.0), "optimizer.momentum": ("float", 0.0, 0.9),
        "optimizer.weight_decay": ("float", 0.0, 0.1), "loss.label_smoothing": ("float", 0.0, 0.5),
        "clip.norm": ("float", 0.5, 5.0)}
FUNCTIONS = {
    "sum": lambda u, noise: 3 * (u[0] - 0.6) ** 2 + 0.6 * u[1] + 0.2 * u[2] + 0.01 * noise,
    "products": lambda u, noise: 2 * (u[0] - 0.4) ** 2 + 0.8 * u[0] * u[1] + 0.4 * u[3] ** 2 + 0.02 * noise,
    "valley": lambda u, noise: math.tanh(6 * abs(u[1] - 0.3)) + 0.5 * u[4] + 0.02 * noise,
}


def value_at(key, unit):
    kind, low, high = KEYS[key]
    return low * (high / low) ** unit if kind == "log" else low + unit * (high - low)


def weft(program, folder, *words):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def of_weft(program, folder, name, units, losses):
    """Shares of a study with these trials, which nobody has trained."""
    ranges = [word for key, (kind, low, high) in KEYS.items() for word in ("--set-range", f"{key}={kind}:{low}:{high}")]
    weft(program, folder, "tune", "recipe.toml", "--study", name, "--trials", "1", "--quiet", "--objective",
         "validation_loss", *ranges)
    with sqlite3.connect(f"{folder}/{name}/study.db") as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(trials)")]
        rest = dict(zip(columns, database.execute("SELECT * FROM trials WHERE number = 0").fetchone()))
        for number, (place, loss) in enumerate(zip(units, losses)):
            point = {key: value_at(key, unit) for key, unit in zip(KEYS, place)}
            row = dict(rest, number=number, state="finished", point=json.dumps(point), results=json.dumps([loss]))
            marks = ",".join("?" * len(columns))
            database.execute(f"INSERT OR REPLACE INTO trials VALUES ({marks})", [row[column] for column in columns])
    return json.loads(weft(program, folder, "tune", "show", name, "--importance", "--json"))["keys"]


def of_optuna(units, losses):
    study = optuna.create_study()
    distributions = {key: optuna.distributions.FloatDistribution(0, 1) for key in KEYS}
    for place, loss in zip(units, losses):
        study.add_trial(optuna.trial.create_trial(params=dict(zip(KEYS, place)), distributions=distributions, value=loss))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=1)
        return evaluator.evaluate(study)


def shares(found):
    total = sum(found.values())
    return {key: value / total for key, value in found.items()}


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    program = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        write_recipe(folder)
        for name, function in FUNCTIONS.items():
            draw = random.Random(name)
            units = [[draw.random() for _ in KEYS] for _ in range(150)]
            losses = [function(place, draw.gauss(0, 1)) for place in units]
            own, peer = shares(of_weft(program, folder, name, units, losses)), shares(of_optuna(units, losses))
            print(name, *(f"{key} {own[key]:.3f} {peer[key]:.3f}" for key in peer), sep="\n  ")
            # Keys that decide nothing have no order.
            decisive = [key for key in peer if peer[key] > 0.05]
            if [key for key in own if key in decisive] != decisive:
                failures.append(f"{name}: order {list(own)} in place of {list(peer)}")
            failures += [f"{name}: {key} {own[key]:.3f} in place of {peer[key]:.3f}" for key in KEYS
                         if abs(own[key] - peer[key]) > 0.1]
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
