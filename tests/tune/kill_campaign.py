#!/usr/bin/env python3
"""Random kills of the tuner and of its trials: no finished trial is lost, and with one worker the study is the same as
without kills.

Usage: kill_campaign.py WEFT [--kills 100] [--seed 1] [--scheduler asha]

The study of one worker runs once undisturbed. Then it runs again; SIGKILL hits the tuner, or the process of its trial,
after a time that is drawn, and the tuner is started anew with --resume where it has ended. After each kill the trials
that were finished before are compared. When the kills are done the study runs to its end and is compared with the first.
Ends with status 1 where anything differs.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from campaign import show, write_recipe


def children(process):
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def words(options, study):
    return [options.weft, "tune", "recipe.toml", "--study", study, "--quiet", "--workers", "1", "--trials",
            str(options.trials), "--scheduler", options.scheduler, "--set-range", "optimizer.learning_rate=log:1e-3:1",
            "--set-range", "batch=int:16:64:16", "--set-range", "model.hidden=choice:8|32"]


def start(options, folder, study):
    known = os.path.exists(os.path.join(folder, study, "study.db"))
    command = [options.weft, "tune", "--resume", study, "--quiet", "--workers", "1"] if known else words(options, study)
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finished(shown):
    return {trial["trial"]: (trial["values"], trial["results"]) for trial in shown["trials"]
            if trial["state"] == "finished"}


def outcome(shown):
    """All that must not depend on kills."""
    return [(trial["trial"], trial["state"], trial["values"], trial["results"], trial["epochs"])
            for trial in shown["trials"]]


def disturb(options, folder, draw):
    """Kills until there were enough, or the study is over. How many hit the tuner and a trial, and what was lost."""
    hits, lost = [0, 0], []
    process, kept, hits_trial = start(options, folder, "killed"), {}, True
    while sum(hits) < options.kills:
        time.sleep(draw.uniform(0.02, options.longest))
        if process.poll() is not None:
            if process.returncode == 0:
                break
            process = start(options, folder, "killed")
            continue
        trials = children(process.pid)
        # In turn: a trial that is killed three times by a tuner that lives counts as failed, as where memory is short.
        if hits_trial and trials:
            os.kill(trials[0], signal.SIGKILL)
            hits[1] += 1
        else:
            process.kill()
            process.wait()
            hits[0] += 1
        hits_trial = not hits_trial
        if not os.path.exists(os.path.join(folder, "killed", "study.db")):
            continue
        try:
            now = finished(show(options.weft, folder, "killed"))
        except subprocess.CalledProcessError:  # killed before its first tables were there
            continue
        lost += [f"trial {number} was finished with {result}, and is {now.get(number)}"
                 for number, result in kept.items() if now.get(number) != result]
        kept = now
    process.kill()
    process.wait()
    return hits, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--longest", type=float, default=0.8, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheduler", default="asha")
    options = parser.parse_args()
    options.weft = os.path.abspath(options.weft)
    with tempfile.TemporaryDirectory() as folder:
        write_recipe(folder, epochs=9)
        subprocess.run(words(options, "whole"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        hits, lost = disturb(options, folder, random.Random(options.seed))
        while start(options, folder, "killed").wait() != 0:
            pass
        whole, killed = outcome(show(options.weft, folder, "whole")), outcome(show(options.weft, folder, "killed"))
        lost += [f"{one} without kills, {other} with them" for one, other in zip(whole, killed) if one != other]
        if len(whole) != len(killed):
            lost.append(f"{len(killed)} trials in place of {len(whole)}")
    for line in lost:
        print(line)
    print(f"{hits[0]} kills of the tuner and {hits[1]} of trials: {len(whole)} trials, "
          f"{'the same as without kills' if not lost else f'{len(lost)} differences'}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
