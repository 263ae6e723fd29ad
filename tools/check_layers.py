#!/usr/bin/env python3
"""Checks that includes only point down: `a <- b` lets b include a, and whatever a may include. Within a folder and its
subfolders, which count by their whole path, no two may include each other, nor any go round in a circle.

Usage: check_layers.py [ROOT]    ROOT is the folder that holds weft/ and docs/; the project's by default.

Prints one line per violation, and the number of circles, and ends with status 1 where there is one. The same arrows stand in docs/layout.md, and
the check fails where the two differ.
"""

import pathlib
import re
import sys

ARROWS = """
base <- tensor <- graph <- ops
base <- plot
graph <- autodiff
graph <- device
device, ops <- passes
device <- plan
passes, plan <- compile
tensor <- comm
comm, plan <- runtime
device, ops <- cpu
tensor <- data
ops <- models
tensor <- interchange
device, models <- onnx
autodiff, data, models, runtime <- library
cpu, onnx, tasks <- standard
compile, library <- spec
spec <- step
comm, device <- machines
machines, step <- simulate
compile, step <- program
program <- train
program, simulate <- predict <- search
interchange, onnx, search, train <- run
compile, data, onnx, runtime <- engine <- quantize
cpu, engine, weft_infer.h <- c_interface
run <- infer <- tasks
plot, run <- report
comm <- launch
engine, run <- deploy
launch, run <- tune
plot, search <- planner
deploy, infer, launch, planner, quantize, report, tune <- cli
""".strip().splitlines()

# Headers of third parties that only one folder may see.
CONFINED = {
    re.compile(r"dnnl"): "weft/cpu/onednn",
    re.compile(r"cairo"): "weft/plot",
    re.compile(r"mpi"): "weft/comm/mpi",
    re.compile(r"sqlite"): "weft/tune",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def allowed_folders(arrows):
    """For each folder the set of folders that it may include, itself and what its own may include among them."""
    direct = {}
    for line in arrows:
        chain = [[name.strip() for name in group.split(",")] for group in line.split("<-")]
        for lower, upper in zip(chain, chain[1:]):
            for name in lower:
                direct.setdefault(name, set())
            for name in upper:
                direct.setdefault(name, set()).update(lower)

    def reach(name):
        found = {name}
        for lower in direct[name]:
            found |= reach(lower)
        return found

    return {name: reach(name) for name in direct}


def check_file(path, shown, allowed):
    """The violations of one file; `shown` is its path from the root, weft/FOLDER/..."""
    if shown.name == "weft.h" and len(shown.parts) == 2:  # the header for users stands above all folders
        folder, allowed = "weft.h", {"weft.h": set(allowed)}
    else:
        folder = shown.parts[1]
    if folder not in allowed:
        yield f"{shown}: folder '{folder}' is not in the table of tools/check_layers.py; add it there and to docs/layout.md"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, target = match.group(1) == '"', match.group(2)
        if quoted and not target.startswith("weft/"):
            yield f'{shown}:{number}: include "{target}" by its path from the root: "weft/..."'
        elif quoted:
            lower = pathlib.PurePosixPath(target).parts[1]
            if lower not in allowed[folder]:
                yield (f"{shown}:{number}: {folder} may not include {target}; "
                       f"it may include {', '.join(sorted(allowed[folder]))}")
        for pattern, home in CONFINED.items():
            if not quoted and pattern.search(target) and not shown.is_relative_to(home):
                yield f"{shown}:{number}: <{target}> may be included under {home} only"


def included_folders(path):
    """The folders of weft/ that a file includes, by their whole path, each with the line that does first."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if match and match.group(1) == '"' and match.group(2).startswith("weft/"):
            found.setdefault(str(pathlib.PurePosixPath(match.group(2)).parent), number)
    return found


def find_circles(files, root):
    """Folders, by their whole path, that include each other directly or over others; one line for each circle."""
    edges = {}  # folder -> {included folder: "file:line"}
    for path in files:
        shown = path.relative_to(root)
        folder = str(shown.parent)
        edges.setdefault(folder, {})
        for target, number in included_folders(path).items():
            if target != folder:
                edges[folder].setdefault(target, f"{shown}:{number}")

    state, circles = {}, []

    def walk(folder, trail):
        state[folder] = "open"
        for target in sorted(edges.get(folder, {})):
            if state.get(target) == "open":
                ring = trail[trail.index(target):] + [target]
                steps = [f"{a} -> {b} ({edges[a][b]})" for a, b in zip(ring, ring[1:])]
                circles.append("folders include each other in a circle: " + ", ".join(steps))
            elif target not in state:
                walk(target, trail + [target])
        state[folder] = "done"

    for folder in sorted(edges):
        if folder not in state:
            walk(folder, [folder])
    return circles


def check_documentation(page):
    """The arrows in the block of docs/layout.md that begins with ```arrows."""
    if not page.exists():
        return [f"{page.name}: missing; it has to show the arrows of tools/check_layers.py"]
    block = re.search(r"^```arrows\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if block is None or block.group(1).split("\n")[:-1] != ARROWS:
        return [f"docs/{page.name}: its ```arrows block differs from ARROWS in tools/check_layers.py"]
    return []


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    allowed = allowed_folders(ARROWS)
    violations = []
    files = sorted(path for path in (root / "weft").rglob("*") if path.suffix in (".h", ".cpp"))
    for path in files:
        violations += check_file(path, path.relative_to(root), allowed)
    violations += check_documentation(root / "docs" / "layout.md")
    circles = find_circles(files, root)
    for line in violations + circles:
        print(line)
    print(f"{len(files)} files, {len(violations)} violations, {len(circles)} circles")
    return 1 if violations or circles or not files else 0


if __name__ == "__main__":
    sys.exit(main())
