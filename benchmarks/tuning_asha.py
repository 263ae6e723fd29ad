#!/usr/bin/env python3
"""What successive halving saves: the same random trials, all trained to their end, and by `--scheduler asha`, as a Markdown
table (and JSON with --json FILE).

  benchmarks/tuning_asha.py --shared DIR                       # two tasks, 3 seeds: half an hour, alone
  benchmarks/tuning_asha.py --shared DIR --only optdigits --seeds 1 --trials 20

The tasks and DIR are those of benchmarks/tuning_tasks.py. Compute is counted in epochs. A worker is
idle while it waits for the tuner to speak, or is not there, from the first trial's start to the last one's: this program
looks every few milliseconds in which system call the main thread of each worker is. It knows those of x86-64.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from tuning_tasks import TASKS, range_words, read_study, recipe_words  # noqa: E402

WORKERS = 2
LOOK = 0.004  # seconds
POLLS = ("7", "271")  # poll and ppoll


def busy_workers(tuner):
    """The tuner's processes that do not wait for it."""
    busy = set()
    try:
        children = pathlib.Path(f"/proc/{tuner}/task/{tuner}/children").read_text(encoding="utf-8").split()
    except OSError:  # it has ended
        return busy
    for child in children:
        try:
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if words[1:3] != [b"tune", b"trainer"]:  # it measures the winner
                continue
            if pathlib.Path(f"/proc/{child}/syscall").read_text(encoding="utf-8").split()[0] not in POLLS:
                busy.add(child)
        except OSError:  # it has ended
            continue
    return busy


def search(weft, words, space, folder, scheduler, seed, trials):
    """The study as JSON, its seconds, and the share of the time in which a worker was idle."""
    study = folder / scheduler
    command = [weft, "tune", *words, "--study", str(study), "--searcher", "random", "--scheduler", scheduler, "--trials",
               str(trials), "--workers", str(WORKERS), "--seed", str(seed), "--quiet",
               *range_words(space)]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    before, looks = set(), []  # per look: when, how many train, and whether one of them has just begun
    while process.poll() is None:
        busy = busy_workers(process.pid)
        looks.append((time.monotonic(), min(WORKERS, len(busy)), bool(busy - before)))
        before = busy
        time.sleep(LOOK)
    if process.returncode != 0:
        sys.exit(f"weft tune ended with {process.returncode}")
    seconds = time.monotonic() - begin
    starts = [at for at, (_, _, is_new) in enumerate(looks) if is_new]
    looks = looks[starts[0]:starts[-1] + 1]
    worked = sum(count * (after - when) for (when, count, _), (after, _, _) in zip(looks, looks[1:]))
    return read_study(weft, study), seconds, 1 - worked / (WORKERS * (looks[-1][0] - looks[0][0]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--shared", required=True, help="the folder of the data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=27, help="of a trial that trains to its end")
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; default: optdigits and fashion_lenet5")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    print(f"{arguments.trials} random trials of {arguments.epochs} epochs, {WORKERS} workers; medians of {arguments.seeds} "
          "seeds\n")
    print("| task | best in full, % | best by ASHA, % | difference, points | compute | seconds | idle in full, % | idle by "
          "ASHA, % |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for task in arguments.only or ["optdigits", "fashion_lenet5"]:
        metric, seen = TASKS[task]["metric"], []
        for seed in range(1, arguments.seeds + 1):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                words = recipe_words(task, arguments.shared, folder, arguments.epochs)
                sides = {}
                for scheduler in ("none", "asha"):
                    study, seconds, idle = search(arguments.weft, words, TASKS[task]["space"], folder, scheduler, seed,
                                                  arguments.trials)
                    ended = [trial for trial in study["trials"] if metric in trial.get("results", {})]
                    sides[scheduler] = {"best": study["best"]["results"][metric], "seconds": seconds, "idle": idle,
                                        "epochs": sum(trial["epochs"] for trial in ended)}
                seen.append(sides)
        full, asha = ([one[scheduler] for one in seen] for scheduler in ("none", "asha"))

        def median(of):
            return statistics.median(of)

        row = {"task": task, "seeds": arguments.seeds, "full": median([one["best"] for one in full]),
               "asha": median([one["best"] for one in asha]),
               "difference": median([b["best"] - a["best"] for a, b in zip(full, asha)]),
               "compute": median([b["epochs"] / a["epochs"] for a, b in zip(full, asha)]),
               "seconds": median([b["seconds"] / a["seconds"] for a, b in zip(full, asha)]),
               "idle_full": median([one["idle"] for one in full]), "idle_asha": median([one["idle"] for one in asha])}
        rows.append(row)
        print(f"| {task} | {100 * row['full']:.2f} | {100 * row['asha']:.2f} | {100 * row['difference']:+.2f} | "
              f"{row['compute']:.2f} | {row['seconds']:.2f} | {100 * row['idle_full']:.1f} | "
              f"{100 * row['idle_asha']:.1f} |", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
