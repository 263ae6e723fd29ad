#!/usr/bin/env python3
"""weft tune beside Optuna's newest on the same recipes, live on this machine: the seconds until each has found as good a
trial as Optuna's TPE had at its end, as a Markdown table (and JSON with --json FILE).

  benchmarks/tuning_live.py --shared DIR                       # two tasks, 5 seeds: most of an hour, alone
  benchmarks/tuning_live.py --shared DIR --only optdigits --seeds 2 --trials 20

Both sides train by the same `weft train` with one thread, two trials at a time, over the space of benchmarks/tuning_tasks.py
(which says what lies in DIR). weft tunes by `weft tune --workers 2`. Optuna has n_jobs=2, TPE with multivariate=True,
group=True and constant_liar=True, which its documentation recommends for several jobs; "hyperband" adds its HyperbandPruner,
which reads the epochs of a running trial and ends it. How Optuna is found is said in benchmarks/tuning.py.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from peer_python import peer_python  # noqa: E402
from tuning import suggest  # noqa: E402
from tuning_tasks import TASKS, loss_of, range_words, recipe_words  # noqa: E402

JOBS = 2
PAUSE = 0.02  # seconds between two looks at a running trial


def epochs_in(run, seen):
    """The evaluations of a run so far, behind those that were seen."""
    path = run / "metrics.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # the last one may be half written
    return [record for record in map(json.loads, lines) if record["kind"] == "epoch"][seen:]


class OptunaSide:
    """Drives `weft train` by Optuna; notes each epoch's end, and the best loss of its trial."""

    def __init__(self, task, weft, words, folder, prunes, epochs):
        self.task, self.weft, self.words, self.folder, self.prunes, self.epochs = task, weft, words, folder, prunes, epochs
        self.metric = TASKS[task]["metric"]
        self.history = []

    def objective(self, trial):
        import optuna
        point = suggest(trial, TASKS[self.task]["space"])
        run = self.folder / f"run-{trial.number}"
        values = [word for key, value in point.items() for word in ("--set", f"{key}={value}")]
        command = [self.weft, "train", *self.words, *values, "--threads", "1", "--run", str(run), "--quiet",
                   "--pause-after", str(self.epochs)]  # as weft tune does: the test data are not measured
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen, best = 0, None
        while True:
            ended = process.poll() is not None
            for record in epochs_in(run, seen):
                seen += 1
                if record[self.metric] is None:
                    continue
                loss = loss_of(self.task, record[self.metric])
                best = loss if best is None else min(best, loss)
                self.history.append((time.monotonic(), best))
                if self.prunes:
                    trial.report(best, seen)
                    if not ended and trial.should_prune():
                        process.kill()
                        process.wait()
                        shutil.rmtree(run, ignore_errors=True)
                        raise optuna.TrialPruned()
            if ended:
                break
            time.sleep(PAUSE)
        shutil.rmtree(run, ignore_errors=True)
        if process.returncode != 0 or best is None:
            raise optuna.TrialPruned()  # its loss became NaN
        return best


def tune_by_optuna(task, weft, words, folder, seed, trials, prunes, epochs):
    import warnings
    import optuna
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(multivariate=True, group=True, constant_liar=True, seed=seed)
    pruner = optuna.pruners.HyperbandPruner(1, epochs, 3) if prunes else optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    side = OptunaSide(task, weft, words, folder, prunes, epochs)
    begin = time.monotonic()
    study.optimize(side.objective, n_trials=trials, n_jobs=JOBS)
    return time.monotonic() - begin, [(at - begin, loss) for at, loss in side.history]


def tune_by_weft(task, weft, words, folder, seed, trials, scheduler):
    """When each trial's best became known: from the epochs in its metrics file, looked at while the search runs."""
    study = folder / "study"
    command = [weft, "tune", *words, "--study", str(study), "--trials", str(trials), "--workers", str(JOBS),
               "--threads", "1", "--seed", str(seed), "--scheduler", scheduler, "--quiet",
               *range_words(TASKS[task]["space"])]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    history, seen = [], {}
    while True:
        ended = process.poll() is not None
        for run in (study / "runs").glob("*") if (study / "runs").exists() else []:
            for record in epochs_in(run, seen.get(run.name, 0)):
                seen[run.name] = seen.get(run.name, 0) + 1
                if record[TASKS[task]["metric"]] is not None:
                    history.append((time.monotonic() - begin, loss_of(task, record[TASKS[task]["metric"]])))
        if ended:
            break
        time.sleep(PAUSE)
    if process.returncode != 0:
        sys.exit(f"weft tune ended with {process.returncode}")
    return time.monotonic() - begin, history


def seconds_to(history, loss):
    """None where it was never as good."""
    return min((at for at, one in history if one <= loss), default=None)


def finite(value):
    """For JSON, which knows no infinity."""
    return value if value != float("inf") else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--shared", required=True, help="the folder of the data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=9, help="of a trial")
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; default: optdigits and adult")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    import optuna
    print(f"Optuna {optuna.__version__}; {arguments.trials} trials of {arguments.epochs} epochs, {JOBS} at a time; medians "
          f"of {arguments.seeds} seeds\n")
    print("| task | side | seconds in all | seconds to Optuna's final value | share of Optuna's | as good in | best loss |\n"
          "|---|---|---|---|---|---|---|")
    rows = []
    for task in arguments.only or ["optdigits", "adult"]:
        found = {}
        for seed in range(1, arguments.seeds + 1):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                words = recipe_words(task, arguments.shared, folder, arguments.epochs)
                sides = {
                    "Optuna TPE": lambda at: tune_by_optuna(task, arguments.weft, words, at, seed, arguments.trials, False,
                                                            arguments.epochs),
                    "Optuna TPE, Hyperband": lambda at: tune_by_optuna(task, arguments.weft, words, at, seed,
                                                                       arguments.trials, True, arguments.epochs),
                    "weft TPE": lambda at: tune_by_weft(task, arguments.weft, words, at, seed, arguments.trials, "none"),
                    "weft TPE, ASHA": lambda at: tune_by_weft(task, arguments.weft, words, at, seed, arguments.trials,
                                                              "asha"),
                }
                # Another one begins with each seed, so that a busy minute of the machine meets all of them.
                order = list(sides)
                for side in order[seed % len(order):] + order[:seed % len(order)]:
                    at = folder / side.replace(" ", "-").replace(",", "")
                    at.mkdir()
                    found.setdefault(side, []).append(sides[side](at))
                    shutil.rmtree(at, ignore_errors=True)
        for side, runs in found.items():
            shares, times = [], []
            for (seconds, history), (whole, theirs) in zip(runs, found["Optuna TPE"]):
                target = min(loss for _, loss in theirs)
                reached = seconds_to(history, target)
                times.append(reached if reached is not None else float("inf"))
                shares.append(times[-1] / seconds_to(theirs, target))
            best = [min(loss for _, loss in history) for _, history in runs]
            row = {"task": task, "side": side, "seconds": statistics.median(run[0] for run in runs),
                   "to_final": finite(statistics.median(times)), "share": finite(statistics.median(shares)),
                   "reached": sum(time != float("inf") for time in times), "best": statistics.median(best)}
            rows.append(row)
            shown = [f"{row[name]:.{digits}f}" if row[name] is not None else "-" for name, digits in
                     (("seconds", 1), ("to_final", 1), ("share", 2))]
            print(f"| {task} | {side} | {' | '.join(shown)} | {row['reached']} of {arguments.seeds} | {row['best']:.4f} |",
                  flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if importlib.util.find_spec("optuna") is None:  # once more with the Python that has it
        python = peer_python(ROOT / "build/tuning_peer", ROOT / "benchmarks/peer/tuning.txt", "TUNING_PEER")
        os.execv(python, [python, *sys.argv])
    sys.exit(main())
