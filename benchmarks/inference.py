#!/usr/bin/env python3
"""Inference beside ONNX Runtime and OpenVINO: latency of one sample and throughput of batches, in f32, bf16 and int8.

`weft export` writes each network of the zoo as ONNX, and all three run that file on the same threads. Latency is one sample at
a time over all threads. Throughput is batches of 16: by all threads together or by a stream per thread, whichever is faster on
each side. int8 is each side's own quantizer's. What that leaves real, such as products of two activations, weft and OpenVINO
compute in f32 or bf16, whichever is faster on each side. weft's weights have 7 bits where the processor has no VNNI, as ONNX
Runtime's would for its accuracy, which changes nothing in its speed. A precision that a peer has not is judged against its
fastest one that is no less exact, which the row names: bf16 against f32, int8 of a model that its quantizer refuses against
bf16 or f32. A row shows medians over the rounds, which run in turn. A ratio is the median of weft's samples/s over the peer's
of the same round.

A second table has the memory of one sample at a time: by how much the process grew at most, from just before it read the model.

  benchmarks/inference.py --json inference.json                       # all cells: about an hour
  benchmarks/inference.py --only resnet18 --precision f32 --rounds 1
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
from typing import NamedTuple

from peer_python import NoPeer, peer_python
from peer_settings import processor
from sides import ROOT, SideFailed, has_bf16, precisions_of_processor, run_json, weight_bits

MODELS = ["resnet50", "resnet18", "mobilenet_v2", "vit_tiny", "vgg16", "densenet121", "transformer_lm", "lstm_classifier"]
REQUIREMENTS = ROOT / "benchmarks/peer/inference_requirements.txt"
PEER = ROOT / "benchmarks/peer/infer_speed.py"
BATCH = 16
# What a peer is asked for where it has not the precision itself, or its quantizer refuses the model.
INSTEAD = {("onnxruntime", "bf16"): "f32", ("onnxruntime", "int8"): "f32", ("openvino", "int8"): "bf16" if has_bf16() else "f32"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=MODELS, help="repeatable; default: all")
    parser.add_argument("--precision", action="append", choices=["f32", "bf16", "int8"],
                        help="repeatable; default: all that the processor has")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="how long each side measures in a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/inference", help="folder of the models")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures here, anew after each row")
    return parser.parse_args()


def export(model, arguments):
    path = arguments.out / f"{model}.onnx"
    if not path.exists():
        arguments.out.mkdir(parents=True, exist_ok=True)
        subprocess.run([arguments.weft, "export", model, path], check=True, stdout=subprocess.DEVNULL)
    return path


def write_input(path, batch, arguments):
    """An .npy file as the model reads it: pixels about zero, or tokens."""
    kind, _, shape = run_json([arguments.weft, "import", path, "--json"])["inputs"][0]["type"].rstrip("]").partition("[")
    sizes = [int(size) if size.isdigit() else batch for size in shape.split(",")]
    count = 1
    for size in sizes:
        count *= size
    drawn = random.Random(0)
    if kind == "f32":
        descr, numbers = "<f4", struct.pack(f"<{count}f", *(drawn.gauss(0, 1) for _ in range(count)))
    else:
        size, letter = (4, "i") if kind == "i32" else (8, "q")
        descr, numbers = f"<i{size}", struct.pack(f"<{count}{letter}", *(drawn.randrange(10) for _ in range(count)))
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(sizes)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    result = path.with_suffix(f".{batch}.npy")
    result.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers)
    return result


def weft_model(path, precision, arguments):
    """The file that weft runs: int8 is quantized by weft."""
    if precision != "int8":
        return path
    bits = weight_bits()
    result = path.with_suffix(f".weft_int{bits}.onnx")
    if not result.exists():
        subprocess.run([arguments.weft, "quantize", path, "--bits", str(bits), "--drawn-samples", "8", "-o", result], check=True,
                       stdout=subprocess.DEVNULL)
    return result


class Setting(NamedTuple):
    """What a side may choose."""

    streams: int
    rest: str  # of an int8 model: the precision of what stays real, such as products of activations


def weft_speed(path, batch, precision, setting, arguments):
    """As many runs as fill the seconds: a first, short measurement says how many."""
    streams = setting.streams
    command = [arguments.weft, "infer", weft_model(path, precision, arguments), "--input", write_input(path, batch, arguments),
               "--batch", batch, "--threads", arguments.threads // streams, "--streams", streams, "--json",
               "--precision", setting.rest if precision == "int8" else precision]

    def runs(count):
        result = run_json([*command, "--repeat", count], arguments.threads)
        return {"speed": result["rows_per_second"], "grown": result["grown_bytes"]}

    return runs(max(5, round(runs(3)["speed"] * arguments.seconds / batch / streams)))


def peer_speed(peer, path, batch, precision, setting, arguments):
    result = run_json([python(), PEER, peer, path, "--batch", batch, "--precision", precision, "--rest", setting.rest,
                       "--threads", arguments.threads, "--streams", setting.streams, "--seconds", arguments.seconds],
                      arguments.threads)
    return {"speed": result["samples_per_second"], "grown": result["grown_bytes"]}


def python():
    try:
        return peer_python(ROOT / "build/inference_peer", REQUIREMENTS, "INFERENCE_PYTHON")
    except NoPeer as failure:
        raise SideFailed(str(failure)) from None


def peer_precision(peer, path, precision, arguments):
    """What the peer runs in this cell: the precision itself, or the one that stands for it."""
    if peer == "onnxruntime" and precision == "bf16":
        return INSTEAD[peer, precision]
    try:
        peer_speed(peer, path, 1, precision, Setting(1, "f32"), arguments)
        return precision
    except SideFailed:
        if (peer, precision) not in INSTEAD:
            raise
        return INSTEAD[peer, precision]


def candidates(side, batch, precision, arguments):
    """The settings among which the fastest is a side's."""
    streams = [1] if batch == 1 else sorted({1, arguments.threads})
    rests = ["f32", "bf16"] if precision == "int8" and side != "onnxruntime" and has_bf16() else ["f32"]
    return [Setting(count, rest) for count in streams for rest in rests]


def fastest(speed, settings):
    """The setting that is, of those that the side takes at all."""
    if len(settings) == 1:
        return settings[0]
    found, refusal = {}, None
    for setting in settings:
        try:
            found[setting] = speed(setting)["speed"]
        except SideFailed as failure:
            refusal = failure
    if not found:
        raise refusal
    return max(found, key=found.get)


def measure(model, batch, precision, arguments):
    """Ratios by peer; settings are tried once, and the fastest is kept per side."""
    path = export(model, arguments)
    speeds = {"weft": lambda setting: weft_speed(path, batch, precision, setting, arguments)}
    runs = {peer: peer_precision(peer, path, precision, arguments) for peer in ("onnxruntime", "openvino")}
    for peer in runs:
        speeds[peer] = lambda setting, peer=peer: peer_speed(peer, path, batch, runs[peer], setting, arguments)
    best = {side: fastest(speed, candidates(side, batch, precision if side == "weft" else runs[side], arguments))
            for side, speed in speeds.items()}
    results = []
    for index in range(arguments.rounds):
        order = list(speeds) if index % 2 == 0 else list(reversed(speeds))
        results.append({side: speeds[side](best[side]) for side in order})
    rounds = [{side: result["speed"] for side, result in each.items()} for each in results]
    row = {"model": model, "batch": batch, "precision": precision, "ran": runs, "rounds": rounds,
           "settings": {side: setting._asdict() for side, setting in best.items()},
           "grown_bytes": {side: statistics.median(each[side]["grown"] for each in results) for side in speeds}}
    for side in speeds:
        row[side] = statistics.median(each[side] for each in rounds)
    for peer in ("onnxruntime", "openvino"):
        row[f"over_{peer}"] = statistics.median(each["weft"] / each[peer] for each in rounds)
    return row


def row_text(row):
    if "error" in row:
        return f"| {row['model']} | {row['batch']} | {row['precision']} | **failed** | {row['error']} | | | |"

    def shown(side, ran):
        if ran != row["precision"]:
            return f"{row[side]:.1f} ({ran})"
        return f"{row[side]:.1f}" + (" (and bf16)" if row["settings"][side]["rest"] == "bf16" else "")

    weft, onnxruntime, openvino = (shown(side, ran) for side, ran in {"weft": row["precision"], **row["ran"]}.items())
    return (f"| {row['model']} | {row['batch']} | {row['precision']} | {weft} | {onnxruntime} | {openvino} | "
            f"**{row['over_onnxruntime']:.2f}** | **{row['over_openvino']:.2f}** |")


def memory_text(row):
    grown = row["grown_bytes"]
    shown = " | ".join(f"{grown[side] / 1e6:.0f}" for side in ("weft", "onnxruntime", "openvino"))
    ratios = " | ".join(f"**{grown['weft'] / grown[peer]:.2f}**" for peer in ("onnxruntime", "openvino"))
    return f"| {row['model']} | {row['precision']} | {shown} | {ratios} |"


def main():
    arguments = parse_arguments()
    versions = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    precisions = arguments.precision or precisions_of_processor("f32", "bf16", "int8")
    print(f"{processor()}, {arguments.threads} threads, ONNX Runtime {versions['onnxruntime']}, OpenVINO {versions['openvino']}\n\n"
          "| model | batch | precision | weft | ONNX Runtime | OpenVINO | over ONNX Runtime | over OpenVINO |\n"
          "|---|---:|---|---:|---:|---:|---:|---:|", flush=True)
    rows = []
    for model in arguments.only or MODELS:
        for precision in precisions:
            for batch in (1, BATCH):
                try:
                    row = measure(model, batch, precision, arguments)
                except (SideFailed, subprocess.CalledProcessError) as failure:
                    row = {"model": model, "batch": batch, "precision": precision, "error": str(failure).strip().splitlines()[-1]}
                rows.append(row)
                print(row_text(row), flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps({"processor": processor(), "rows": rows}, indent=1))
    good = [row for row in rows if "error" not in row]
    for peer in ("onnxruntime", "openvino"):
        if good:
            ratios = sorted(row[f"over_{peer}"] for row in good)
            print(f"\nover {peer}: median {statistics.median(ratios):.2f}, lowest {ratios[0]:.2f}, {len(good)} cells")
    print("\nMemory of one sample at a time, MB; weft's over the peer's\n\n"
          "| model | precision | weft | ONNX Runtime | OpenVINO | over ONNX Runtime | over OpenVINO |\n"
          "|---|---|---:|---:|---:|---:|---:|")
    for row in good:
        if row["batch"] == 1:
            print(memory_text(row))
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
