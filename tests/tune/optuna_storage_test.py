#!/usr/bin/env python3
"""Optuna itself reads what `weft tune --storage` wrote: the same trials, values, params and states as the study has.

Usage: optuna_storage_test.py WEFT    Exits 77 where Optuna is absent: install it by `pip install optuna`, or name a
Python that has it by TUNING_PEER (benchmarks/tuning.py makes one in build/tuning_peer).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from campaign import write_recipe

ROOT = pathlib.Path(__file__).resolve().parents[2]

try:
    import optuna
except ImportError:
    peers = [os.environ.get("TUNING_PEER"), ROOT / "build/tuning_peer/bin/python3"]
    peers = [str(peer) for peer in peers if peer and pathlib.Path(peer).exists()]
    if not peers or os.environ.get("WEFT_TRIED_PEER"):
        print("skipped: Optuna is not installed; `pip install optuna`, or set TUNING_PEER to a Python that has it")
        sys.exit(77)
    os.execve(peers[0], [peers[0], *sys.argv], dict(os.environ, WEFT_TRIED_PEER="1"))

STATES = {"finished": "COMPLETE", "stopped": "PRUNED", "failed": "FAIL", "refused": "FAIL"}
def weft(program, folder, *words):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def same(value, wanted):
    return value == wanted or (isinstance(value, float) and abs(value - wanted) <= 1e-12 * abs(wanted))


def check(study, shown):
    """Differences, a line each."""
    found = []
    if len(study.trials) != len(shown["trials"]):
        return [f"{len(study.trials)} trials in place of {len(shown['trials'])}"]
    names = [objective["name"] for objective in shown["objectives"]]
    if study.metric_names != names:
        found.append(f"metrics {study.metric_names} in place of {names}")
    for trial, wanted in zip(study.trials, shown["trials"]):
        if trial.state.name != STATES[wanted["state"]]:
            found.append(f"trial {trial.number} is {trial.state.name} in place of {wanted['state']}")
        values = [wanted["results"][name] for name in names] if wanted["results"] else None
        if trial.state.name == "COMPLETE" and trial.values != values:
            found.append(f"trial {trial.number} has values {trial.values} in place of {values}")
        if trial.params.keys() != wanted["values"].keys() or not all(
                same(trial.params[key], value) for key, value in wanted["values"].items()):
            found.append(f"trial {trial.number} has {trial.params} in place of {wanted['values']}")
    return found


def compare(program, folder, name, *words):
    weft(program, folder, "tune", "recipe.toml", "--study", name, "--storage", "optuna.db", "--workers", "2", "--quiet",
         *words)
    shown = json.loads(weft(program, folder, "tune", "show", name, "--json"))
    study = optuna.load_study(study_name=name, storage=f"sqlite:///{folder}/optuna.db")
    differences = check(study, shown)
    best = study.best_trials if len(shown["objectives"]) > 1 else [study.best_trial]
    wanted = shown["front"] if len(shown["objectives"]) > 1 else [shown["best"]["trial"]]
    if not {trial.number for trial in best} & set(wanted):
        differences.append(f"{name}: the best are {[trial.number for trial in best]} in place of {wanted}")
    return differences


def main():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    program = os.path.abspath(sys.argv[1])
    ranges = ["--set-range", "optimizer.learning_rate=log:1e-3:1", "--set-range", "batch=int:16:64:16", "--set-range",
              "optimizer.name=choice:sgd,adamw", "--set-range", "optimizer.nesterov=bool"]
    with tempfile.TemporaryDirectory() as folder:
        write_recipe(folder)
        differences = compare(program, folder, "one", *ranges, "--trials", "8", "--scheduler", "median")
        differences += compare(program, folder, "two", *ranges, "--trials", "6", "--searcher", "nsga2", "--objective",
                               "validation_accuracy,parameters", "--constraint", "parameters <= 1M")
    if differences:
        sys.exit("\n".join(differences))
    print(f"Optuna {optuna.__version__} reads both studies")


if __name__ == "__main__":
    main()
