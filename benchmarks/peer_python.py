#!/usr/bin/env python3
"""The Python that runs the peer of the benchmarks: a virtual environment with benchmarks/peer/requirements.txt.

The first benchmark makes it in build/peer, which takes a minute; later ones find it there. It is made anew when the list
of requirements changes. PEER_PYTHON names another Python that has PyTorch, and nothing is installed then. pip takes a
PyTorch from where it is configured to: without a configuration that is PyPI, whose PyTorch for Linux brings CUDA along.

  benchmarks/peer_python.py          # makes it where it is missing; prints its path
"""
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks/peer/requirements.txt"
FOLDER = ROOT / "build/peer"


class NoPeer(Exception):
    """The virtual environment cannot be made."""


def run(command, variable):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise NoPeer(f"{' '.join(map(str, command))} ended with {result.returncode}:\n{result.stderr.strip()[-2000:]}\n"
                     f"Install what is in the list yourself and name its Python: {variable}=/path/to/python3")


def make(folder, requirements, variable):
    print(f"Installing {requirements} in {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    run([python, "-m", "venv", folder], variable)
    install = [folder / "bin/python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*install, "-r", requirements], variable)


def peer_python(folder=FOLDER, requirements=REQUIREMENTS, variable="PEER_PYTHON"):
    """Path of a Python with these packages: the one that the variable names, or an environment made here. Else NoPeer."""
    if named := os.environ.get(variable):
        return named
    folder.parent.mkdir(parents=True, exist_ok=True)
    wanted, complete = requirements.read_text(), folder / "complete"
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two benchmarks at once make one
        # Written last: what an interruption left is made anew.
        if not complete.exists() or complete.read_text() != wanted:
            make(folder, requirements, variable)
            complete.write_text(wanted)
    return str(folder / "bin/python3")


if __name__ == "__main__":
    try:
        print(peer_python())
    except NoPeer as failure:
        sys.exit(f"peer_python: {failure}")
