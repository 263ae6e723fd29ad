#!/usr/bin/env python3
"""How much memory a rank takes beside what weft planned for it, by network and strategy, as Markdown: means of all ranks.

Planned are states, arena, buffers of messages and scratch, and what graphs and kernels take by the number of nodes. Taken is
the growth of resident memory while `weft bench` builds and runs steps, without pages of code. 0 % means that the plan held
to the byte.

  benchmarks/strategy_memory.py --out build/strategy_memory            # six networks, 2 and 4 ranks: 20 minutes on two cores
  benchmarks/strategy_memory.py --out build/strategy_memory --only vit_tiny --ranks 2

--goes-on keeps rows that --out holds. Speed does not matter here, so four ranks may share two cores.
"""
import argparse
import json
import pathlib
import statistics
import sys

from peer_settings import processor
from sides import PIPELINE_SCHEDULES, ROOT, SideFailed, run_json

# Input per sample, samples in all ranks' batch, and options of the model.
NETWORKS = {
    "transformer_lm": ("128", 16, []),
    "vit_tiny": ("3,128,128", 16, []),
    "resnet18": ("3,128,128", 32, []),
    "alexnet": ("3,128,128", 32, []),
    "seq2seq_attention": ("64", 32, ["model.width=512"]),
    "mixture": ("128", 16, ["model.experts=4"]),
}


def strategies_of(network, ranks):
    """Settings by the strategy's name."""
    rows = {f"data {ranks}": ["late_multiply=false"]}
    rows |= {f"data {ranks}, ZeRO {level}": [f"shard.zero={level}"] for level in (1, 2, 3)}
    rows[f"tensor {ranks}"] = [f"mesh.tensor={ranks}"]
    rows[f"tensor {ranks} by sequence"] = [f"mesh.tensor={ranks}", "shard.sequence=true"]
    rows |= {f"pipeline {ranks}, {schedule}": [f"mesh.pipeline={ranks}", f"pipeline.schedule={schedule}", "pipeline.micro_batches=4"]
             for schedule in PIPELINE_SCHEDULES}
    if ranks == 4:
        rows["data 2 x tensor 2"] = ["mesh.tensor=2"]
        rows["data 2 x pipeline 2"] = ["mesh.pipeline=2", "pipeline.micro_batches=4"]
    if network == "mixture":
        divided = [f"data {ranks}"] + (["data 2 x tensor 2"] if ranks == 4 else [])
        rows |= {f"{name}, experts divided": rows[name] + ["shard.experts=data"] for name in divided}
    return rows


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", choices=list(NETWORKS), help="a network; repeatable; default: all")
    parser.add_argument("--ranks", action="append", type=int, choices=[2, 4], help="repeatable; default: both")
    parser.add_argument("--seconds", type=float, default=1, help="how long a row runs steps")
    parser.add_argument("--goes-on", action="store_true")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.only = arguments.only or list(NETWORKS)
    arguments.ranks = arguments.ranks or [2, 4]
    return arguments


def measure_row(network, ranks, strategy, arguments):
    shape, batch, options = NETWORKS[network]
    model = "transformer_lm" if network == "mixture" else network
    command = ["mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", arguments.weft, "bench", model, "--input", shape,
               "--batch", batch, "--threads", 1, "--seconds", arguments.seconds, "--json"]
    for setting in options + strategies_of(network, ranks)[strategy]:
        command += ["--set", setting]
    bench = run_json(command, threads=1)
    return {"network": network, "strategy": strategy, "planned_bytes": bench["memory_of_ranks"]["planned_bytes"] / ranks,
            "taken_bytes": bench["memory_of_ranks"]["taken_bytes"] / ranks}


def over_plan(row):
    return row["taken_bytes"] / row["planned_bytes"] - 1


def row_text(row):
    more = row["taken_bytes"] - row["planned_bytes"]
    return (f"| {row['network']} | {row['strategy']} | {row['planned_bytes'] / 1e6:.1f} MB | {row['taken_bytes'] / 1e6:.1f} MB | "
            f"{more / 1e6:+.1f} MB | {100 * over_plan(row):+.1f} % |")


def summary_of(rows):
    """Per network, and of all."""
    lines = ["| network | rows | planned | taken over planned: median of sizes | lowest | highest |", "|---|---|---|---|---|---|"]
    for network in [*NETWORKS, None]:
        chosen = [row for row in rows if network in (None, row["network"])]
        if not chosen:
            continue
        over, planned = [100 * over_plan(row) for row in chosen], [row["planned_bytes"] / 1e6 for row in chosen]
        lines.append(f"| {network or 'all'} | {len(chosen)} | {min(planned):.0f}-{max(planned):.0f} MB | "
                     f"{statistics.median(map(abs, over)):.1f} % | {min(over):+.1f} % | {max(over):+.1f} % |")
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text()) if arguments.goes_on and kept.exists() else []
    print(f"{processor()}\n\n| network | strategy | planned | taken | more | |\n|---|---|---|---|---|---|")
    for row in rows:
        print(row_text(row))
    failed = 0
    for network in arguments.only:
        for ranks in arguments.ranks:
            for strategy in strategies_of(network, ranks):
                if any((row["network"], row["strategy"]) == (network, strategy) for row in rows):
                    continue
                try:
                    rows.append(measure_row(network, ranks, strategy, arguments))
                    print(row_text(rows[-1]), flush=True)
                    kept.write_text(json.dumps(rows, indent=1) + "\n")
                except SideFailed as failure:
                    failed += 1
                    print(f"strategy_memory: {network}, {strategy}: {failure}", file=sys.stderr)
    if rows:
        print(f"\n{summary_of(rows)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
