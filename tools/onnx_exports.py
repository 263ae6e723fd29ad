#!/usr/bin/env python3
"""Writes ONNX files as PyTorch, TensorFlow and scikit-learn export them, with inputs and the outputs that those compute.

Models have seeded random weights, a few hundred thousand to a few million parameters, and a dynamic batch axis. From
PyTorch come twelve architectures, each by torch.onnx.export(dynamo=True) and by the older way. FILE.onnx has its samples
beside it, in two batches: FILE/batch_2/inputs/NAME.npy and outputs/NAME.npy. OPERATORS.txt lists which operators each file
uses, of which opset. ONNX Runtime runs every file, and how far it is from the framework is printed: what may be asked of
others. tools/onnx_roundtrip.py runs weft on them.

  tools/onnx_exports.py build/onnx_files                      # five minutes on two cores
  tools/onnx_exports.py build/onnx_files --only hf_swin       # files whose name begins so

Exits 1 where a file could not be written. The first run installs the frameworks (tools/onnx_peer.py).
"""
import argparse
import collections
import importlib
import logging
import pathlib
import sys
import traceback
from typing import Iterator

import onnx_peer


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="OUT_DIR", help="where the files go")
    parser.add_argument("--only", action="append", metavar="NAME", help="files that begin so; repeatable; default: all")
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = parse_arguments()  # before anything is installed
    onnx_peer.enter()

import onnx  # noqa: E402
import onnxruntime  # noqa: E402

from onnx_samples import largest_distance, save_samples  # noqa: E402
from onnx_sources import Export, Makers  # noqa: E402

SOURCES = ("from_pytorch", "from_tensorflow", "from_scikit_learn")


def all_makers() -> Makers:
    return {name: make for source in SOURCES
            for name, make in importlib.import_module(f"onnx_sources.{source}").makers().items()}


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """With those of the graphs in attributes: branches, bodies of loops."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)


def counted(model: onnx.ModelProto) -> collections.Counter[str]:
    nodes = [*nodes_of(model.graph), *(node for function in model.functions for node in function.node)]
    return collections.Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in nodes)


def listed(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def operators(paths: list[pathlib.Path]) -> str:
    """A line of text per file on its opsets, operators and local functions, and one on how many files use an operator."""
    lines, files = [], collections.Counter()
    for path in paths:
        model = onnx.load(path, load_external_data=False)
        opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
        functions = f"; {len(model.functions)} local functions" if model.functions else ""
        counts = counted(model)
        files.update(counts.keys())
        lines.append(f"{path.name} (opset {opsets}, IR {model.ir_version}{functions}): {listed(counts)}\n")
    return "".join(lines) + f"Files that use each operator, of {len(paths)}: {listed(files)}\n"


def distance_of_onnx_runtime(path: pathlib.Path, export: Export) -> float:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    worst = 0.0
    for sample in export.samples:
        names = list(sample.outputs)
        worst = max(worst, largest_distance(dict(zip(names, session.run(names, sample.inputs))), sample.outputs))
    return worst


def main(arguments: argparse.Namespace) -> int:
    logging.disable(logging.WARNING)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, make in all_makers().items():
        if arguments.only and not any(name.startswith(wanted) for wanted in arguments.only):
            continue
        path = arguments.folder / f"{name}.onnx"
        try:
            export = make()
            export.write(path)
            save_samples(export.samples, arguments.folder / name)
            megabytes = sum(file.stat().st_size for file in arguments.folder.glob(f"{path.name}*")) / 1e6
            difference = distance_of_onnx_runtime(path, export)
            print(f"{name}: {megabytes:.1f} MB, ONNX Runtime differs by {difference:.1e}", flush=True)
        except Exception:  # noqa: BLE001: the other files are wanted all the same
            failed.append(name)
            print(f"{name}: failed\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    paths = sorted(arguments.folder.glob("*.onnx"))
    (arguments.folder / "OPERATORS.txt").write_text(operators(paths))
    print(f"{len(paths)} files in {arguments.folder}; not written: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(ARGUMENTS))
