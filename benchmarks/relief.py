#!/usr/bin/env python3
"""How much of a slow rank's delay smaller shares save: two ranks of this host, one of them slowed by half, as Markdown.

The second rank is stopped half of the time, in short pieces. Each round trains four ways, in turn: with two fast ranks,
with two fast ranks whose batches are cut into grains, with a slow one, and with a slow one that is relieved
(balance.grains). Steps are counted between records of metrics.jsonl, after --settle seconds of steps in which shares
change. "of ideal" is the relieved speed over 0.75 of that of two fast ranks without grains, in the same round: what a
rank and half a rank can do. Figures are medians over the rounds, with the lowest and the highest.

  benchmarks/relief.py                                   # about 8 minutes
  benchmarks/relief.py --model vit_tiny --set model.width=64 --rounds 5
  benchmarks/relief.py --rounds 1 --settle 10 --seconds 5    # whether it works, no figures to quote

The machine must have two cores for itself: where others want them too, a rank that is stopped half of the time gets as
much of its core as one that is not. Steps must take longer than --period. Exits 1 where a run could not be measured.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from sides import MPIRUN_AS_ROOT, ROOT, SideFailed


class SlowedRank:
    """Stops a process half of the time, until it is told to end."""

    def __init__(self, process, period):
        self.process, self.period, self.ended = process, period, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        # Each piece ends when its time has come, however late the one before was.
        begin, pieces = time.monotonic(), 0
        try:
            while not self.ended.is_set():
                os.kill(self.process, signal.SIGSTOP if pieces % 2 == 0 else signal.SIGCONT)
                pieces += 1
                time.sleep(max(0.0, begin + pieces * self.period / 2 - time.monotonic()))
        except ProcessLookupError:
            pass

    def end(self):
        self.ended.set()
        self.thread.join()
        try:
            os.kill(self.process, signal.SIGCONT)
        except ProcessLookupError:
            pass


def process_of_rank(rank, run):
    """Of the ranks that train into that directory."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if str(run).encode() not in words or not words[0].endswith(b"weft"):
                continue
            if f"OMPI_COMM_WORLD_RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
        except OSError:
            continue  # it has just ended, or is somebody else's
    raise SideFailed(f"there is no rank {rank}")


class Records:
    """Of metrics.jsonl, as they come."""

    def __init__(self, path):
        self.path, self.read, self.rest = path, 0, ""

    def new(self):
        if not self.path.exists():
            return []
        with open(self.path, encoding="utf-8") as file:
            file.seek(self.read)
            text = self.rest + file.read()
            self.read = file.tell()
        *lines, self.rest = text.split("\n")
        return [json.loads(line) for line in lines if line]


def measure(arguments, slow, grains):
    """Samples per second of both ranks, and the shares at the end."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = ["mpirun", "-n", "2", "--bind-to", "none", arguments.weft, "train", "--model", arguments.model, "--data",
                   arguments.data, "--batch", arguments.batch, "--threads", "1", "--epochs", "1000", "--run", run, "--quiet",
                   "--set", "evaluation.every_epochs=0", "--set", "checkpoint.every_epochs=0",
                   *[word for one in arguments.set for word in ("--set", one)]]
        if grains:
            command += ["--set", f"balance.grains={grains}"]
        environment = {**os.environ, **MPIRUN_AS_ROOT, "OMP_WAIT_POLICY": "passive"}
        errors = open(pathlib.Path(folder) / "errors", "w+", encoding="utf-8")
        process = subprocess.Popen([str(word) for word in command], env=environment, stdout=errors, stderr=errors)
        slowed = None
        try:
            records, shares = Records(run / "metrics.jsonl"), []
            begin = first = last = None
            while first is None or last[0] - first[0] < arguments.seconds:
                if process.poll() is not None:
                    errors.seek(0)
                    raise SideFailed(f"{' '.join(map(str, command))}: {errors.read()}")
                time.sleep(0.005)
                now = time.monotonic()
                for record in records.new():
                    if record["kind"] == "shares":
                        shares = record["grains"]
                    if record["kind"] != "step":
                        continue
                    if begin is None:
                        begin = now
                        if slow:
                            slowed = SlowedRank(process_of_rank(1, run), arguments.period)
                    if now - begin >= arguments.settle:
                        last = (now, record["step"])
                        first = first or last
            return (last[1] - first[1]) * arguments.batch / (last[0] - first[0]), shares
        finally:
            if slowed:
                slowed.end()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
            errors.close()


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet9")
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--batch", type=int, default=128, help="of both ranks")
    parser.add_argument("--grains", type=int, default=16)
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="of the recipe; repeatable; default model.width=16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--settle", type=float, default=20, help="seconds before steps are counted")
    parser.add_argument("--seconds", type=float, default=10, help="in which steps are counted")
    parser.add_argument("--period", type=float, default=0.02, help="seconds; for half of them the slow rank is stopped")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    if arguments.set is None:
        arguments.set = ["model.width=16"] if arguments.model == "resnet9" else []
    if shutil.which("mpirun") is None:
        sys.exit("there is no mpirun; install openmpi-bin")
    ways = {"two fast ranks": (False, 0), "two fast ranks, in grains": (False, arguments.grains), "one slow": (True, 0),
            "one slow, relieved": (True, arguments.grains)}
    speeds, shares = {way: [] for way in ways}, []
    try:
        for _ in range(arguments.rounds):
            for way, (slow, grains) in ways.items():
                speed, at_end = measure(arguments, slow, grains)
                speeds[way].append(speed)
                shares = at_end or shares
                print(f"{way}: {speed:.1f}/s {at_end or ''}", file=sys.stderr)
    except SideFailed as failure:
        sys.exit(str(failure))
    fast = speeds["two fast ranks"]
    of_ideal = {way: [speed / (0.75 * ideal) for speed, ideal in zip(of_way, fast)] for way, of_way in speeds.items()}
    print("| ranks | samples/s | of ideal |\n|---|---|---|")
    for way in ways:
        print(f"| {way} | {spread(speeds[way], 1)} | {spread(of_ideal[way], 2)} |")
    print(f"\n{arguments.model}, batch {arguments.batch}, {arguments.grains} grains; shares at the end: {shares}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"speeds": speeds, "of_ideal": of_ideal, "shares": shares}, indent=2) + "\n")


if __name__ == "__main__":
    main()
