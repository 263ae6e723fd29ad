#!/usr/bin/env python3
"""The Python that checks weft's ONNX against others: a virtual environment with benchmarks/peer/onnx_requirements.txt.

The first of tools/onnx_*.py makes it in build/onnx_peer, which takes a minute or two and 3 GB; later ones find it there.
ONNX_PYTHON names another Python that has these packages, and nothing is installed then.

  tools/onnx_peer.py          # makes it where it is missing; prints its path
"""
import importlib.util
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from peer_python import NoPeer, peer_python  # noqa: E402

FOLDER = ROOT / "build/onnx_peer"
REQUIREMENTS = ROOT / "benchmarks/peer/onnx_requirements.txt"
ENTERED = "WEFT_ONNX_PEER_ENTERED"


def onnx_python() -> str:
    try:
        return peer_python(FOLDER, REQUIREMENTS, "ONNX_PYTHON")
    except NoPeer as failure:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {failure}")


def enter() -> None:
    """Starts the script anew in that Python, unless the one that runs has the packages."""
    has_them = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))
    if has_them or os.environ.get(ENTERED):
        return  # a package that is missing even there is named by its import
    python = onnx_python()
    os.environ[ENTERED] = "yes"
    os.execv(python, [python, *sys.argv])


if __name__ == "__main__":
    print(onnx_python())
