#!/usr/bin/env python3
"""Two ranks that share a transformer, beside PyTorch: fully sharded (FSDP2), and as a pipeline (torch.distributed.pipelining).

Each round runs weft's ranks and PyTorch's in turn, with the same network, tokens, batch, micro-batches, optimiser (AdamW)
and threads. A table of tokens per second, of the most memory that a rank took beyond what it had before the model was
made, and of their ratios: medians over the rounds, with the lowest and the highest. The last row sets weft's sharded
ranks beside its own data-parallel ones. The pipeline runs by 1F1B on both sides, and by the fastest schedule of each, which is
zero bubble in a V (zero_bubble_v, ScheduleZBVZeroBubble). `--only schedules` measures all schedules of both sides.

  benchmarks/strategies.py --rounds 5
  benchmarks/strategies.py --only fsdp --steps 8 --set preset=small --batch 8

PyTorch runs eagerly over Gloo on this host, through GLOO_SOCKET_IFNAME=lo. Its other rank ends with the first.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

from sides import ROOT, TRAIN_SPEED, SideFailed, in_turn, python_of_peer, run_json, run_ranks_json, spread

WEFT = {
    "fsdp": ["--set", "shard.zero=3", "--set", "late_multiply=false"],
    "ddp": ["--set", "late_multiply=false"],
}

PIPELINES = {"1f1b": "1f1b", "zero bubble": "zero_bubble_v"}  # weft's schedules, by row
# PyTorch's schedules, by weft's names.
SCHEDULES = {"gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "interleaved", "zero_bubble": "interleaved_zero_bubble",
             "zero_bubble_v": "zbv"}


def network(arguments):
    """The model with its options, as both sides take them."""
    return ["transformer_lm", "--input", str(arguments.length), "--classes", str(arguments.vocabulary),
            "--threads", str(arguments.threads)]


def weft_side(strategy, arguments):
    """`strategy`: of WEFT, or a schedule of a pipeline."""
    settings = [*WEFT.get(strategy, []), "--set", "optimizer.name=adamw", "--batch", str(arguments.batch)]
    for option in arguments.set:
        settings += ["--set", f"model.{option}"]
    if strategy in SCHEDULES:
        for setting in ("mesh.pipeline=2", f"pipeline.schedule={strategy}", f"pipeline.micro_batches={arguments.micro_batches}"):
            settings += ["--set", setting]
    command = ["mpirun", "-n", "2", "--bind-to", "none", arguments.weft, "bench", *network(arguments), *settings,
               "--seconds", str(arguments.seconds), "--json"]
    result = run_json(command, arguments.threads)
    return {"tokens": result["tokens_per_second"], "bytes": result["rss_growth_bytes"]}


def pytorch_side(strategy, arguments):
    is_pipeline = strategy in SCHEDULES
    batch = arguments.batch if is_pipeline else arguments.batch // 2
    with tempfile.TemporaryDirectory() as folder:
        commands = [[python_of_peer(), TRAIN_SPEED, *network(arguments), "--batch", str(batch), "--adamw", "--steps", str(arguments.steps),
                     "--rank", str(rank), "--ranks", "2", "--meet", os.path.join(folder, "meet"), "--strategy", "pipeline" if is_pipeline else strategy,
                     "--micro-batches", str(arguments.micro_batches), "--schedule", SCHEDULES.get(strategy, "1f1b"), *(word for option in arguments.set for word in ("--set", option))]
                    for rank in range(2)]
        result = run_ranks_json(commands, arguments.threads)
    return {"tokens": arguments.batch * arguments.length / result["step_seconds"], "bytes": result["rss_growth_bytes"]}


def measure(name, sides, arguments):
    rounds = in_turn(arguments.rounds, sides)
    first, second = sides
    median = {side: {key: statistics.median(r[side][key] for r in rounds) for key in ("tokens", "bytes")} for side in sides}
    ratios = [r[first]["tokens"] / r[second]["tokens"] for r in rounds]
    memory = [r[first]["bytes"] / r[second]["bytes"] for r in rounds]
    print(f"| {name} | {median[first]['tokens']:.0f} | {median[second]['tokens']:.0f} | {spread(ratios)} | "
          f"{median[first]['bytes'] / 1e6:.0f} MB | {median[second]['bytes'] / 1e6:.0f} MB | {spread(memory)} |", flush=True)
    return {"row": name, "rounds": rounds, "ratios": ratios, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=["fsdp", *PIPELINES, "own", "schedules"], help="repeatable; default: all")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE", help="options of the model; default: preset=small")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8, help="of both ranks together")
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6, help="how long weft measures in a round")
    parser.add_argument("--steps", type=int, default=10, help="that PyTorch measures in a round")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    arguments.set = arguments.set or ["preset=small"]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    print(f"2 ranks of {arguments.threads} threads, {arguments.rounds} rounds, medians of tokens/s\n")
    print("| strategy | weft | PyTorch | weft / PyTorch | memory of a rank | PyTorch's | weft / PyTorch |")
    print("|---|---|---|---|---|---|---|", flush=True)
    rows = arguments.only or ["fsdp", *PIPELINES, "own"]
    report = []
    wanted = [("fully sharded", "fsdp")] if "fsdp" in rows else []
    wanted += [(f"pipeline of 2, both by {schedule}", schedule) for row, schedule in PIPELINES.items() if row in rows]
    if "schedules" in rows:
        wanted += [(f"pipeline of 2, {schedule}, {other}", schedule) for schedule, other in SCHEDULES.items()]
    for name, strategy in wanted:
        report.append(measure(name, {"weft": lambda: weft_side(strategy, arguments),
                                     "PyTorch": lambda: pytorch_side(strategy, arguments)}, arguments))
    if "own" in rows:
        report.append(measure("fully sharded, beside weft's data parallel",
                              {"sharded": lambda: weft_side("fsdp", arguments), "data parallel": lambda: weft_side("ddp", arguments)},
                              arguments))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except SideFailed as failure:
        sys.exit(f"strategies: {failure}")
