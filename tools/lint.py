#!/usr/bin/env python3
"""Runs clang-tidy over the library and the program, as a build folder compiles them; every finding once.

  tools/lint.py                         # all of weft/
  tools/lint.py launch run              # sources whose unit has one of these words in its path
  tools/lint.py --build build-dev       # units of one source each: slower, and line by line the same

A release build compiles batches of sources, so that headers are read once per batch: clang-tidy takes about a quarter of
the time. Exit code 1 where there is a finding.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FINDING = re.compile(r"^(/[^:]+):(\d+):\d+: (warning|error): (.*)")
FLAGS_OF_GCC = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument"]


def units(build, words):
    """The sources that the build compiles from weft/, batches among them."""
    with open(build / "compile_commands.json") as file:
        entries = json.load(file)
    found = []
    for entry in entries:
        path = os.path.join(entry["directory"], entry["file"])
        batch = re.search(r"CMakeFiles/weft[a-z_]*\.dir/Unity/", path)
        if (batch or path.startswith(f"{ROOT}/weft/")) and (not words or any(word in path for word in words)):
            found.append(path)
    return sorted(set(found))


def check(unit, build):
    """What clang-tidy says of it, by place: a finding with the lines that explain it."""
    flags = [f"--extra-arg={flag}" for flag in FLAGS_OF_GCC]
    command = ["clang-tidy", "--quiet", "-p", str(build), r"--header-filter=/weft/.*\.(h|cpp)$", *flags, unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings, place = {}, None
    for line in done.stdout.splitlines():
        if match := FINDING.match(line):
            place = match.groups()
            findings[place] = []
        if place is not None:
            findings[place].append(line.replace(f"{ROOT}/", ""))
    if done.returncode != 0 and not findings:
        findings[unit, "0", "error", "clang-tidy"] = [f"{unit}: clang-tidy ended with code {done.returncode}: {done.stderr.strip()}"]
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if not (build / "compile_commands.json").exists():
        sys.exit(f"lint: '{arguments.build}' has no compile_commands.json; configure it first, as `make lint` does")
    todo, seen = units(build, arguments.words), set()
    if not todo:
        sys.exit(f"lint: '{arguments.build}' compiles no source with {' or '.join(arguments.words)} in its path")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for number, findings in enumerate(pool.map(lambda unit: check(unit, build), todo), 1):
            for place, lines in findings.items():
                if place not in seen:
                    print("\n".join(lines), flush=True)
            seen.update(findings)
            end = "\n" if number == len(todo) else ""
            if sys.stderr.isatty():
                print(f"\r{number} of {len(todo)} units, {len(seen)} findings", end=end, file=sys.stderr, flush=True)
    print(f"{len(todo)} units, {len(seen)} findings")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
