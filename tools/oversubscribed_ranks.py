#!/usr/bin/env python3
"""Trains on many more ranks than there are cores: no rank may be taken for lost, however long it waits for its turn.

    python3 tools/oversubscribed_ranks.py --weft build/weft                 # 64 ranks, and 32 beside a busy process, 5 runs each
    python3 tools/oversubscribed_ranks.py --weft build/weft --ranks 16 --runs 1

Prints a line per run, and all that a run said where it went wrong. Exit code 1 where a run did not end by itself with
code 0, or said that a rank was lost; 77 where there is no mpirun.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from processes import DATA, write_data

LOST = re.compile(r"no sign of life|was lost|was stopped|was ended by")
BUSY = "while :; do :; done"


def train(weft, folder, ranks, steps, limit):
    """The seconds of a run, and what it said where it went wrong."""
    run = f"{folder}/run"
    command = [weft, "launch", "-n", str(ranks), "--", "train", "--model", "mlp", "--data", DATA, "--run", run, "--batch",
               str(4 * ranks), "--max-steps", str(steps), "--epochs", "1000000", "--threads", "1", "--quiet",
               "--set", "checkpoint.every_epochs=0", "--set", "evaluation.every_epochs=0"]
    environment = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", OMP_WAIT_POLICY="passive")
    begin = time.time()
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return limit, f"has not ended after {limit} s"
    finally:
        shutil.rmtree(run, ignore_errors=True)
    seconds = time.time() - begin
    is_right = done.returncode == 0 and not LOST.search(done.stderr)
    return seconds, "" if is_right else f"exit code {done.returncode}, said:\n{done.stderr.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/weft", help="the program")
    parser.add_argument("--ranks", type=int, default=64, help="half as many beside a busy process")
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run counts as hung")
    options = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun")
        return 77
    weft = os.path.abspath(options.weft)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="weft-oversubscribed-") as folder:
        write_data(folder, training=8 * options.ranks, test=48)
        for ranks, beside in ((options.ranks, []), (options.ranks // 2, [BUSY])):
            others = [subprocess.Popen(["bash", "-c", command]) for command in beside]
            try:
                for number in range(1, options.runs + 1):
                    seconds, wrong = train(weft, folder, ranks, options.steps, options.limit)
                    failed += bool(wrong)
                    print(f"{ranks} ranks on {len(os.sched_getaffinity(0))} cores{' beside a busy process' if others else ''}, "
                          f"run {number}: {seconds:.1f} s, {'NOT OK: ' + wrong if wrong else 'ok'}", flush=True)
            finally:
                for other in others:
                    other.kill()
                    other.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
