#!/usr/bin/env python3
"""Flips bits in the files that weft writes and reads back: each flip is refused or changes nothing, never the result.

    tools/flip_campaign.py --weft build/weft                             # 2,000 flips in each of three files of each kind
    tools/flip_campaign.py --weft build/weft --flips 20 --only manifest  # a quick one

Each trial flips one random bit of one file, in a copy of its run or data, and gives that to weft. Outcomes:

  refused   exit code 1 or 2 and a message of one line
  same      exit code 0 and the result of the untouched file: the same weights, bit for bit. weft may have passed a damaged
            checkpoint over, and says so
  OTHER     exit code 0 and another result
  crash     a signal, an exit code that weft does not have, an internal error, or no message

Runs are of three kinds, so that there are three files of each: sgd, adamw with bf16 where the processor has it, momentum
with moving averages. What people edit (spec.toml) and what is only shown (metrics.jsonl) has no checksum: there OTHER is
allowed, a crash is not.
Prints a table; ends with 1 where a flip gave another result or a crash. --json FILE keeps each that did.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import typing

from processes import DATA, write_data

SMALL = ["--model", "mlp", "--set", "model.hidden=8", "--batch", "32"]
VARIANTS = (["--set", "optimizer.name=sgd"], ["--set", "optimizer.name=adamw", "--precision", "auto"],
            ["--set", "optimizer.momentum=0.9", "--set", "ema.decay=0.9"])
# Kind: pattern of the files, in a run directory or a packed data set; whether another result is allowed.
RUN_FILES = {
    "manifest": ("checkpoints/step-*/manifest.json", False),
    "weights": ("checkpoints/step-*/*.safetensors", False),
    "data": ("data.json", False),
    "plan": ("plan.json", False),
    "cost_profile": ("cost_profile.toml", False),
    "spec": ("spec.toml", True),
    "metrics": ("metrics.jsonl", True),
}
PACKED_FILES = {"packed_manifest": ("manifest.json", False), "packed_index": ("*.index", False),
                "packed_shard": ("*.shard", False)}
CACHE_FILES = {"kernel_cache": ("*.jsonl", False)}
RANKS_FILES = {"cluster": ("cluster.toml", False)}  # of a run on two ranks: a second a trial, so a tenth of the flips
KINDS = {**RUN_FILES, **RANKS_FILES, **PACKED_FILES, **CACHE_FILES}
class Program:
    """weft with a cache of its own, so that a campaign neither reads nor changes the user's."""

    def __init__(self, weft, cache):
        self.weft, self.cache = str(pathlib.Path(weft).resolve()), cache

    def __call__(self, words, folder, cache=None, ranks=1):
        environment = {**os.environ, "WEFT_CACHE_DIR": str(cache or self.cache), "OMP_NUM_THREADS": "1"}
        if ranks > 1:
            environment["WEFT_RANKS_PER_HOST"] = "1"  # as on several hosts, whose links are measured and kept
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        return subprocess.run([*(launcher if ranks > 1 else []), self.weft, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True,
                              errors="replace", timeout=120)

    def must(self, words, folder, cache=None, ranks=1):
        done = self(words, folder, cache, ranks)
        if done.returncode != 0:
            sys.exit(f"flip_campaign: {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")


def weights_of(run):
    """Hash of the tensors of the newest checkpoint, without what stands beside them, such as the time."""
    newest = sorted((run / "checkpoints").glob("step-*"))[-1]
    content = hashlib.sha256()
    for path in sorted(newest.glob("*.safetensors")):
        data = path.read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        content.update(json.dumps({k: v for k, v in header.items() if k != "__metadata__"}, sort_keys=True).encode())
        content.update(data[8 + size:])
    return newest.name + content.hexdigest()


def cut_off(run):
    """As a kill would leave it: without its last checkpoints and its end."""
    newest = sorted((run / "checkpoints").glob("step-*"))[-1:]
    for path in [*newest, run / "checkpoints/best"]:
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
    (run / "summary.json").unlink(missing_ok=True)


class Subject(typing.NamedTuple):
    """A folder with files to flip, what is done with it, and what comes out."""
    folder: pathlib.Path
    words: list  # of the command; it runs beside the folder's copy
    result_of: typing.Callable  # of where it ran


def flip(path, draw):
    data = bytearray(path.read_bytes())
    where, bit = draw.randrange(len(data)), draw.randrange(8)
    data[where] ^= 1 << bit
    path.write_bytes(data)
    return {"byte": where, "bit": bit}


def judge(done, result, expected):
    if "internal error" in done.stderr or done.returncode not in (0, 1, 2):
        return "crash"
    if done.returncode != 0:
        return "refused" if "weft: " in done.stderr else "crash"
    return "same" if result() in expected else "OTHER"


class Campaign:
    def __init__(self, program, place, arguments):
        self.program, self.place, self.arguments = program, place, arguments
        self.slots = threading.local()

    def in_copy(self, subject, change):
        """What the command did with a copy of the folder, which `change` has touched, and the result's function."""
        if not hasattr(self.slots, "folder"):
            self.slots.folder = pathlib.Path(tempfile.mkdtemp(dir=self.place))
        copy = self.slots.folder / subject.folder.name
        shutil.rmtree(self.slots.folder)
        self.slots.folder.mkdir()
        shutil.copytree(subject.folder, copy, symlinks=True)
        changed = change(copy)
        done = self.program(subject.words, self.slots.folder, copy if copy.name.startswith("cache") else None,
                            ranks=2 if copy.name.startswith("ranks") else 1)
        return changed, done, lambda: subject.result_of(self.slots.folder)

    def trial(self, subject, file, seed, expected):
        try:
            changed, done, result = self.in_copy(subject, lambda copy: flip(copy / file, random.Random(seed)))
            outcome = judge(done, result, expected)
        except subprocess.TimeoutExpired:
            return "crash", {"file": str(file), "error": "does not end"}
        return outcome, {"file": str(file), **changed, "exit_code": done.returncode, "stderr": done.stderr[-500:]}

    def untouched(self, subject, kind, change):
        _, done, result = self.in_copy(subject, change)
        if done.returncode != 0:
            sys.exit(f"flip_campaign: {kind}: the untouched files are refused:\n{done.stderr}")
        return result()

    def run(self, subject, kind):
        """Counts of outcomes, and what was not as it should be."""
        expected = [self.untouched(subject, kind, lambda copy: None)]
        if kind in CACHE_FILES:  # a damaged cache is as none
            expected.append(self.untouched(subject, kind, lambda copy: [file.unlink() for file in copy.iterdir()]))
        pattern, other_is_allowed = KINDS[kind]
        files = sorted(p.relative_to(subject.folder) for p in subject.folder.glob(pattern) if p.is_file())
        if not files:
            sys.exit(f"flip_campaign: {kind}: {subject.folder.name} has no such file")
        counts, bad = collections.Counter(), []
        draw = random.Random(f"{self.arguments.seed} {kind} {subject.folder}")
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            trials = [pool.submit(self.trial, subject, draw.choice(files), draw.random(), expected)
                      for _ in range(self.arguments.flips // (10 if kind in RANKS_FILES else 1))]
            for trial in trials:
                outcome, about = trial.result()
                counts[outcome] += 1
                if outcome == "crash" or (outcome == "OTHER" and not other_is_allowed):
                    bad.append({"kind": kind, "outcome": outcome, **about})
        return counts, bad


def make_subjects(program, place):
    """Per kind of file the subjects that have it. Their data lie in `place`, under absolute paths."""
    subjects = collections.defaultdict(list)
    write_data(place, 256, 64)
    for number, variant in enumerate(VARIANTS):
        run, packed, cache = place / f"run-{number}", place / f"packed-{number}", place / f"cache-{number}"
        train = ["train", *SMALL, *variant, "--quiet"]
        begun = [*train, "--data", DATA, "--epochs", "2", "--set", "cost_profile=measured", "--set", "checkpoint.every_steps=5",
                 "--set", "checkpoint.keep=9"]
        program.must([*begun, "--run", run], place)
        cut_off(run)
        for kind in RUN_FILES:
            subjects[kind].append(Subject(run, ["train", "--resume", run.name, "--quiet"],
                                          lambda folder, name=run.name: weights_of(folder / name)))
        on_ranks = place / f"ranks-{number}"
        program.must([*begun, "--run", on_ranks], place, ranks=2)
        cut_off(on_ranks)
        for kind in RANKS_FILES:
            subjects[kind].append(Subject(on_ranks, ["train", "--resume", on_ranks.name, "--quiet"],
                                          lambda folder, name=on_ranks.name: weights_of(folder / name)))
        program.must(["pack", DATA, packed], place)
        for kind in PACKED_FILES:
            subjects[kind].append(Subject(packed, [*train, "--data", f"packed:{packed.name}", "--epochs", "1", "--run", "r",
                                                   "--max-bad-records", "0"],
                                          lambda folder: weights_of(folder / "r")))
        program.must([*train, "--data", DATA, "--epochs", "1", "--run", f"tuned-{number}", "--autotune", "measure"], place,
                     cache)
        absolute = "idx:" + ",".join(str(place / name) for name in DATA.removeprefix("idx:").split(","))
        for kind in CACHE_FILES:
            subjects[kind].append(Subject(cache, [*train, "--data", absolute, "--epochs", "1", "--run", "r", "--autotune",
                                                  "cached"], lambda folder: weights_of(folder / "r")))
    return subjects


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True)
    parser.add_argument("--flips", type=int, default=2000, help="of each of three files of each kind")
    parser.add_argument("--only", action="append", choices=KINDS, help="a kind of file; repeatable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    bad = []
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        program = Program(arguments.weft, place / "cache")
        campaign = Campaign(program, place, arguments)
        print(f"{'file':<16} {'trials':>7} {'refused':>8} {'same':>7} {'OTHER':>6} {'crash':>6}", flush=True)
        for kind, subjects in make_subjects(program, place).items():
            if arguments.only and kind not in arguments.only:
                continue
            total = collections.Counter()
            for subject in subjects:
                counts, worse = campaign.run(subject, kind)
                total.update(counts)
                bad += worse
            trials = sum(total[outcome] for outcome in ("refused", "same", "OTHER", "crash"))
            print(f"{kind:<16} {trials:>7} {total['refused']:>8} {total['same']:>7} {total['OTHER']:>6} {total['crash']:>6}",
                  flush=True)
    for one in bad[:20]:
        print(json.dumps(one))
    if arguments.json:
        arguments.json.write_text(json.dumps(bad, indent=1) + "\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
