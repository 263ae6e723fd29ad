#!/usr/bin/env python3
"""Training on several ranks of this host, weft's and PyTorch's DistributedDataParallel over Gloo, as a Markdown table.

Each round runs one process and then several, weft's and then PyTorch's, each rank on cores of its own, with the same
model, input, batch per rank and threads per rank on synthetic data. "of linear" is the images/s of all ranks over those
of one process times their number; the ratio is weft's images/s on all ranks over PyTorch's. Both are medians over the
rounds, with the lowest and the highest.

  benchmarks/data_parallel.py --rounds 5
  benchmarks/data_parallel.py --only resnet50 --precision bf16 --ranks 2 --threads 1

PyTorch is the one of benchmarks/peer/requirements.txt, in the faster memory format of each model, with gradients as views
of its buckets of 25 MB; --compress f16 sends them in half precision. mpirun and PyTorch's ranks are started on this host
alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

from sides import ROOT, TRAIN_SPEED, Case, SideFailed, faster_format_of_peer, python_of_peer, run_json, run_ranks_json, spread

CASES = {case.model: case for case in (
    Case("resnet50", "3,128,128", 16, 1000),
    Case("mobilenet_v2", "3,128,128", 16, 1000),
    Case("alexnet", "3,128,128", 16, 1000),
    Case("vgg16", "3,128,128", 8, 1000),
    Case("vit_tiny", "3,128,128", 16, 1000),
)}


def cores_of(rank, arguments):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < arguments.ranks * arguments.threads:
        return cores
    return cores[rank * arguments.threads:(rank + 1) * arguments.threads]


def weft_speed(case, ranks, setting, arguments):
    """Images per second of all ranks, in the precision of PyTorch's setting."""
    of_all = case._replace(batch=case.batch * ranks)
    command = [arguments.weft, "bench", *of_all.options(arguments.threads), "--precision", setting.precision,
               "--seconds", arguments.seconds, "--json"]
    if ranks > 1:
        command = ["mpirun", "-n", ranks, "--bind-to", "none", *command]
    else:
        command = ["taskset", "-c", ",".join(map(str, cores_of(0, arguments))), *command]
    return run_json(command, arguments.threads)["samples_per_second"]


def pytorch_speed(case, ranks, setting, arguments):
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            ["taskset", "-c", ",".join(map(str, cores_of(rank, arguments))), python_of_peer(), TRAIN_SPEED,
             *case.options(arguments.threads), *setting.flags(), "--seconds", str(arguments.seconds), "--rank", str(rank), "--ranks", str(ranks),
             "--meet", os.path.join(folder, "meet"), "--compress", arguments.compress]
            for rank in range(ranks)]
        return run_ranks_json(commands, arguments.threads)["images_per_second"]


def run_round(case, setting, arguments):
    speeds = {}
    for side, speed in (("weft", weft_speed), ("pytorch", pytorch_speed)):
        for ranks in (1, arguments.ranks):
            speeds[f"{side} {ranks}"] = speed(case, ranks, setting, arguments)
    return speeds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, help="a case; repeatable; default: resnet50")
    parser.add_argument("--precision", action="append", choices=["f32", "bf16"], help="repeatable; default: both")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6, help="how long each side measures in a round")
    parser.add_argument("--compress", choices=["none", "f16"], default="none", help="PyTorch's gradients")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    ranks, report = arguments.ranks, []
    print(f"{ranks} ranks of {arguments.threads} threads on one host, {arguments.rounds} rounds, medians of images/s\n")
    print(f"| model | precision | weft, 1 | weft, {ranks} | of linear | PyTorch, 1 | DDP, {ranks} | of linear | weft / DDP |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.only or ["resnet50"]:
        for precision in arguments.precision or ["f32", "bf16"]:
            setting = faster_format_of_peer(CASES[name], precision, arguments)
            rounds = [run_round(CASES[name], setting, arguments) for _ in range(arguments.rounds)]

            def median(key):
                return f"{statistics.median(r[key] for r in rounds):.1f}"

            linear = {side: [r[f"{side} {ranks}"] / r[f"{side} 1"] / ranks for r in rounds]
                      for side in ("weft", "pytorch")}
            ratios = [r[f"weft {ranks}"] / r[f"pytorch {ranks}"] for r in rounds]
            print(f"| {name} | {precision} | {median('weft 1')} | {median(f'weft {ranks}')} | {spread(linear['weft'])} | "
                  f"{median('pytorch 1')} | {median(f'pytorch {ranks}')} | {spread(linear['pytorch'])} | "
                  f"{spread(ratios)} |", flush=True)
            report.append({"case": name, "precision": precision, "ranks": ranks, "threads": arguments.threads, "pytorch": str(setting),
                           "rounds": rounds, "of_linear": linear, "ratios": ratios})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"data_parallel: {failure}")
