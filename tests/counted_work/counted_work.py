#!/usr/bin/env python3
"""Compares the counted work of training steps with what is kept beside this file: nodes, flops, bytes, reorders, casts,
memory, and how many nodes each kernel runs; of every model, at the sizes that the benchmarks take, and of every recipe.

Plans only, no step runs. Instruction sets and threads are fixed, so that any machine that has the instructions counts
the same; what a machine lacks is skipped (exit code 77), as is another version of oneDNN, whose kernels are others.
oneDNN chooses some kernels, layouts and workspaces by the size of the second-level cache. On a processor where it has
another size than where the facts were counted, what follows from those choices is left out, and a line says so.

  tests/counted_work/counted_work.py AVX2-f32                 # one of KINDS
  tests/counted_work/counted_work.py --update                 # writes anew what this machine can count
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from sides import size_of  # noqa: E402

# ONEDNN_MAX_CPU_ISA and precision, by name.
KINDS = {
    "AVX2-f32": ("AVX2", "f32"),
    "AVX512_CORE-f32": ("AVX512_CORE", "f32"),
    "AVX512_CORE_BF16-bf16": ("AVX512_CORE_BF16", "bf16"),
}
THREADS = "2"
# Input and classes of recipes whose data say what their model reads.
RECIPE_INPUTS = {
    "adult": ("105", 2),
    "cifar10_speedrun": ("3,32,32", 10),
    "dates": ("64", 40),
    "demo": ("1,28,28", 10),
    "digit_lines": ("1,32,128", 11),
    "fashion_lenet5": ("1,28,28", 10),
    "fashion_lstm": ("1,28,28", 10),
    "optdigits": ("64", 10),
    "photos": ("3,96,96", 10),
    "tinyshakespeare": ("64", 65),
}
# Workspaces follow the sizes of caches here and there, and the arena holds them.
TOLERANCE = {"arena_bytes": 0.02, "workspace_bytes": 0.1}
# What no choice by the size of a cache changes.
WITHOUT_CACHE = {"flops", "casts", "cast_bytes", "state_copies", "state_copy_bytes", "state_bytes"}
CACHE_SIZE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
SKIPPED = 77


class Skip(Exception):
    pass


def weft_json(program, isa, *arguments):
    environment = dict(os.environ, ONEDNN_MAX_CPU_ISA=isa, OMP_WAIT_POLICY="passive")
    result = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f"counted_work: weft {' '.join(arguments)} ended with {result.returncode}:\n{result.stderr}")
    return json.loads(result.stdout)


def cache_size():
    """Of the second level, such as "1024K"; empty where the system does not say."""
    return CACHE_SIZE.read_text().strip() if CACHE_SIZE.exists() else ""


def cases(program, isa):
    """Of each step its name and the arguments of `weft bench`."""
    for model in weft_json(program, isa, "models"):
        shape, batch = size_of(model["name"])
        yield model["name"], ["--input", shape, "--classes", str(model["classes"]), "--batch", str(batch)]
    for recipe in weft_json(program, isa, "recipes"):
        name = recipe["recipe"]
        if name not in RECIPE_INPUTS:
            sys.exit(f"counted_work: say in RECIPE_INPUTS what the model of recipe '{name}' reads")
        shape, classes = RECIPE_INPUTS[name]
        yield f"recipe {name}", ["--input", shape, "--classes", str(classes)]


def facts_of(work):
    """Each fact by its name, in the order of the file."""
    facts = {name: value for name, value in work.items() if not name.startswith("kernels")}
    for kernels, when in (("kernels", ""), ("kernels_when_bound", " when bound")):
        for kernel in sorted(work[kernels], key=lambda kernel: (kernel["op"], kernel["kernel"])):
            facts[f"{kernel['op']} by {kernel['kernel']}{when}"] = kernel["nodes"]
    return facts


def count(program, kind):
    """The version of oneDNN, and of each step its facts. Skip where the machine lacks the instructions."""
    isa, precision = KINDS[kind]
    machine = weft_json(program, isa, "bench", "mlp", "--plan-only")
    if machine["isa"] != isa:
        raise Skip(f"this machine computes with {machine['isa']}, not with {isa}")
    fixed = ["--threads", THREADS, "--precision", precision, "--plan-only"]

    def measure(case):
        name, arguments = case
        report = weft_json(program, isa, "bench", name.removeprefix("recipe "), *arguments, *fixed)
        shape = ",".join(map(str, report["input"]))
        return f"{name}, input {shape}, batch {report['batch']}", facts_of(report["work"])

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return machine["onednn"], dict(pool.map(measure, list(cases(program, isa))))


def render(kind, onednn, cache, steps):
    isa, precision = KINDS[kind]
    lines = [f"# Counted work of training steps in {precision} with {isa}, {THREADS} threads.",
             "# Written by tests/counted_work/counted_work.py --update", f"onednn {onednn}", f"l2 {cache}"]
    for step, facts in steps.items():
        lines += ["", f"[{step}]", *(f"{name} {value}" for name, value in facts.items())]
    return "\n".join(lines) + "\n"


def parse(text):
    onednn, cache, steps, facts = "", "", {}, {}
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            facts = steps.setdefault(line[1:-1], {})
        elif line.startswith("onednn "):
            onednn = line.split()[1]
        elif line.startswith("l2 "):
            cache = line.split()[1]
        elif line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            facts[name] = int(value)
    return onednn, cache, steps


def compare(kept, counted, only=None):
    """A line per fact that differs, of all facts or those in `only`. Of kernels neither more nor fewer is better: which
    serves is said, no more."""
    lines = []
    for step in kept.keys() | counted.keys():
        if step not in counted:
            lines.append(f"{step}: is no step any more")
        elif step not in kept:
            lines.append(f"{step}: is new")
    for step in (step for step in kept if step in counted):
        before, after = kept[step], counted[step]
        for name in [*before, *(name for name in after if name not in before)]:
            if only is not None and name not in only:
                continue
            old, new = before.get(name, 0), after.get(name, 0)
            if abs(new - old) <= TOLERANCE.get(name, 0) * old:
                continue
            share = f", {100 * (new - old) / old:+.1f} %" if old else ""
            verdict = "" if " by " in name else ": worse" if new > old else ": better"
            lines.append(f"{step}: {name} {old} -> {new} ({new - old:+d}{share}){verdict}")
    return sorted(lines)


def check(program, kind):
    """The exit code."""
    path = HERE / f"{kind}.txt"
    if not path.exists():
        sys.exit(f"counted_work: there is no file '{path}'; make it with {sys.argv[0]} --update")
    onednn, counted = count(program, kind)
    kept_onednn, kept_cache, kept = parse(path.read_text())
    if kept_onednn.split(".")[:2] != onednn.split(".")[:2]:
        raise Skip(f"'{path}' is of oneDNN {kept_onednn}, here is {onednn}")
    is_same_cache = kept_cache == cache_size()
    lines = compare(kept, counted, None if is_same_cache else WITHOUT_CACHE)
    if not is_same_cache:
        print(f"{kind}: counted where the second-level cache has {kept_cache}, here it has {cache_size() or 'another size'}: "
              f"compared are {', '.join(sorted(WITHOUT_CACHE))}, and not the other facts")
    if not lines:
        print(f"{kind}: {len(counted)} steps as they were, {sum(map(len, counted.values()))} facts")
        return 0
    worse, better = (sum(line.endswith(word) for line in lines) for word in (": worse", ": better"))
    print("\n".join(lines))
    print(f"\n{kind}: {len(lines)} facts are not as in {path.relative_to(ROOT)}: {worse} worse, {better} better. Where "
          f"that is meant, write them anew and commit them:\n  tests/counted_work/counted_work.py --weft {program} --update")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"default: all of {', '.join(KINDS)}")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--update", action="store_true", help="write what is counted instead of comparing")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"no kind '{min(unknown)}'; there are {', '.join(KINDS)}")
    codes = []
    for kind in arguments.kinds or KINDS:
        try:
            if arguments.update:
                onednn, steps = count(arguments.weft, kind)
                text = render(kind, onednn, cache_size(), steps)
                (HERE / f"{kind}.txt").write_text(text)
                print(f"wrote {(HERE / kind).relative_to(ROOT)}.txt")
            else:
                codes.append(check(arguments.weft, kind))
        except Skip as reason:
            print(f"{kind}: skipped: {reason}")
            codes.append(SKIPPED)
    if 1 in codes:
        sys.exit(1)
    sys.exit(SKIPPED if codes and set(codes) == {SKIPPED} else 0)


if __name__ == "__main__":
    main()
