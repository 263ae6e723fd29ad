#!/usr/bin/env python3
"""Random spaces with random limits of memory: no trial that trains takes more than its limit, and none is killed.

Usage: memory_campaign.py WEFT [--spaces 200] [--seed 1]

Each space searches some of widths and depths of an mlp, batch, optimizer, accumulation and averaging; its limit lies
between what its smallest and its largest trials are planned to take. What a trial takes is what a process
grows by that trains its recipe alone, without code (`rss_growth_bytes` and `code_growth_bytes` of its summary). BESIDE_BYTES
are allowed for ends of the heap. Prints a line for each space that fails and a last one with counts, and ends with status 1
where one failed.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from campaign import show, write_recipe


BESIDE_BYTES = 1_000_000


def space(draw):
    """Ranges, each with its chance to be searched."""
    widths = sorted(draw.sample(["8", "64", "256", "1024", "2048", "256,256", "1024,512", "2048,1024"], draw.randint(3, 6)))
    ranges = [f"model.hidden=choice:{'|'.join(widths)}"]
    for chance, text in [(0.7, f"batch=log-int:8:{draw.choice([64, 128, 256])}"),
                         (0.5, "optimizer.name=choice:sgd,adamw,lamb"), (0.3, "accumulate=int:1:4"),
                         (0.3, "lookahead.steps=choice:0,5"), (0.3, "ema.decay=choice:0,0.9"),
                         (0.5, "optimizer.learning_rate=log:1e-4:0.1")]:
        if draw.random() < chance:
            ranges.append(text)
    return ranges


def tune(program, folder, study, ranges, more):
    words = [program, "tune", "recipe.toml", "--study", study, "--quiet", "--searcher", "random", "--workers", "2"]
    for text in ranges:
        words += ["--set-range", text]
    return subprocess.run(words + more, cwd=folder, capture_output=True, text=True)


def taken_bytes(program, folder, study, trial):
    """By a process that trains the trial's recipe to its end."""
    run = pathlib.Path(folder, study, f"alone-{trial['trial']}")
    subprocess.run([program, "train", pathlib.Path(folder, study, "trials", f"{trial['trial']:04}.toml"), "--run", run,
                    "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return summary["rss_growth_bytes"] - summary["code_growth_bytes"]


def failures(program, folder, study, shown, limit):
    found = []
    for trial in shown["trials"]:
        if trial["state"] == "refused":
            if trial["planned_bytes"] <= limit:
                found.append(f"trial {trial['trial']} was refused with {trial['planned_bytes']} of {limit} bytes")
            continue
        if trial["state"] != "finished":
            found.append(f"trial {trial['trial']} is {trial['state']}: {trial.get('reason')}")
        if trial["planned_bytes"] > limit:
            found.append(f"trial {trial['trial']} trained with {trial['planned_bytes']} planned of {limit} bytes")
        taken = taken_bytes(program, folder, study, trial) if trial["state"] == "finished" else 0
        if taken > limit + BESIDE_BYTES:
            found.append(f"trial {trial['trial']} took {taken} of {limit} bytes")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("--spaces", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.weft = os.path.abspath(options.weft)
    draw = random.Random(options.seed)
    failed = trained = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        write_recipe(folder, epochs=1, side=40)
        for number in range(options.spaces):
            ranges, seed = space(draw), ["--seed", str(draw.randint(0, 10**6))]
            share = draw.random()
            # What trials of the space take tells where a limit divides them.
            first = tune(options.weft, folder, f"first-{number}", ranges, seed + ["--trials", "3"])
            if first.returncode != 0:
                print(f"space {number}: {' '.join(ranges)}: {first.stderr.strip()}")
                failed += 1
                continue
            planned = [trial["planned_bytes"] for trial in show(options.weft, folder, f"first-{number}")["trials"]]
            limit = int(min(planned) + share * (max(planned) - min(planned)))
            second = tune(options.weft, folder, f"second-{number}", ranges,
                          seed + ["--trials", "4", "--constraint", f"memory <= {limit}"])
            shown = show(options.weft, folder, f"second-{number}")
            found = failures(options.weft, folder, f"second-{number}", shown, limit)
            if second.returncode != 0:
                found.append(second.stderr.strip())
            trained += sum(trial["state"] == "finished" for trial in shown["trials"])
            refused += sum(trial["state"] == "refused" for trial in shown["trials"])
            for line in found:
                print(f"space {number}: {' '.join(ranges)}: {line}", flush=True)
            failed += bool(found)
    print(f"{options.spaces} spaces, {failed} failed: {trained} trials trained, {refused} were refused")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
