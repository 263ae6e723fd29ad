#!/usr/bin/env python3
"""What `strategy = "auto"` chooses for two ranks, beside eight usual strategies that are measured too, as Markdown.

For each model, link and memory limit: `weft plan --strategy auto` chooses, by ops that were measured before (`weft rates
--ops --ranks 2`) and links that were probed (`weft cluster probe`). Then `weft bench` measures the chosen strategy and eight
usual ones, each under the same limit, where it can keep to it. The chosen one and those that come near the fastest are then
measured again, in rounds in which they take turns: the least of eight single measurements would be the luckiest one. The
ratio to a rival is the median of the rounds' ratios. The largest of them is shown, or 1 where no rival is faster. Limits:
none, and so many parts of what data parallel needs (--tight).

  benchmarks/auto_strategy.py --out build/auto_strategy                     # half an hour on two cores, root for links
  benchmarks/auto_strategy.py --out build/auto_strategy --link memory --only transformer_lm

The machine has to be quiet. --goes-on keeps ops, links and rows that --out holds.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

from prediction_ranks import MODELS as KNOWN, link_of, measure_ops_of_ranks, on_two_ranks, place_of, probed
from peer_settings import processor
from sides import ROOT, SideFailed, run_json, turned

MODELS = {**KNOWN, "vgg16": ("3,128,128", 8)}
NEAR = 1.25  # of the fastest: measured again
USUAL = {
    "data parallel": ["late_multiply=false"],
    "late multiply": [],
    "zero 1": ["shard.zero=1"],
    "zero 3": ["shard.zero=3"],
    "tensor 2": ["mesh.tensor=2"],
    "pipeline 2, 1f1b": ["mesh.pipeline=2"],
    "pipeline 2, zero_bubble_v": ["mesh.pipeline=2", "pipeline.schedule=zero_bubble_v"],
    "two batches, zero 1": ["shard.zero=1", "accumulate=2"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", choices=list(MODELS), help="repeatable; default: transformer_lm and resnet18")
    parser.add_argument("--link", action="append", metavar="LINK", help="memory, 1gbit, 100mbit...; repeatable; default: these three")
    parser.add_argument("--strategy", action="append", choices=list(USUAL), help="to measure beside; repeatable; default: all eight")
    parser.add_argument("--tight", type=float, default=0.7, metavar="SHARE", help="of data parallel's memory; 0: no tight limit")
    parser.add_argument("--seconds", type=float, default=3, help="how long the steps of a strategy are measured")
    parser.add_argument("--rounds", type=int, default=5, help="how often the chosen one and its rivals are measured; default: 5")
    parser.add_argument("--rate-seconds", type=float, default=60, help="for the ops of a model, at most")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--goes-on", action="store_true")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.only = arguments.only or ["transformer_lm", "resnet18"]
    arguments.link = arguments.link or ["memory", "1gbit", "100mbit"]
    arguments.strategy = arguments.strategy or list(USUAL)
    arguments.weft = os.path.abspath(arguments.weft)
    return arguments


def network(model, arguments):
    return [model, "--input", MODELS[model][0], "--threads", str(arguments.threads)]


def words_of(settings):
    return [word for setting in settings for word in ("--set", setting)]


def settings_of(strategy):
    """Of a strategy as JSON: the recipe's keys."""
    settings = [f"shard.zero={strategy['zero']}", f"accumulate={strategy['accumulate']}",
                f"late_multiply={str(strategy['late_multiply']).lower()}"]
    if strategy["tensor"] > 1:
        settings.append(f"mesh.tensor={strategy['tensor']}")
    if strategy["pipeline"] > 1:
        settings += [f"mesh.pipeline={strategy['pipeline']}", f"pipeline.schedule={strategy['schedule']}",
                     f"pipeline.micro_batches={strategy['micro_batches']}", f"pipeline.chunks={strategy['chunks']}"]
    if strategy["memory_limit"]:
        settings.append(f"memory_limit={strategy['memory_limit']}")
    return settings


def planned(model, settings, batch, cluster, arguments):
    return run_json([arguments.weft, "plan", *network(model, arguments), "--batch", str(batch), *words_of(settings),
                     *place_of(cluster, arguments), "--json"])


def measured(model, settings, batch, link, cluster, arguments):
    """Seconds of a step of so many samples at a time."""
    place = [f"cluster={cluster.resolve()}"] if cluster else []
    result = run_json([*on_two_ranks(link, arguments), arguments.weft, "bench", *network(model, arguments), "--batch", str(batch),
                       *words_of([*settings, *place]), "--seconds", str(arguments.seconds), "--json"], arguments.threads)
    return result["median_step_seconds"]


def name_of(strategy):
    parts = [f"zero {strategy['zero']}"] if strategy["zero"] else []
    if strategy["tensor"] > 1:
        parts.append(f"tensor {strategy['tensor']}")
    if strategy["pipeline"] > 1:
        parts.append(f"pipeline {strategy['pipeline']}, {strategy['micro_batches']} micro-batches, {strategy['schedule']}")
    if strategy["accumulate"] > 1:
        parts.append(f"{strategy['accumulate']} batches")
    if strategy["memory_limit"]:
        parts.append("recompute")
    return ", ".join(parts) or ("late multiply" if strategy["late_multiply"] else "data parallel")


def measure_row(model, link, limit, cluster, arguments):
    batch = MODELS[model][1]
    limits = [f"memory_limit={limit}"] if limit else []
    choice = planned(model, ["strategy=auto", *limits], batch, cluster, arguments)
    row = next(row for row in choice["strategies"] if row["chosen"])
    chosen = row["strategy"]
    sides = {"chosen": (settings_of(chosen), chosen["batch"])}
    for name in arguments.strategy:
        if name == name_of(chosen):
            continue  # the very same step
        sides[name] = ([*USUAL[name], *limits], batch // (2 if "accumulate=2" in USUAL[name] else 1))
    steps = {}  # by name, of all rounds
    for name, (settings, samples) in sides.items():
        try:
            steps[name] = [measured(model, settings, samples, link, cluster, arguments)]
        except SideFailed as failure:
            if name == "chosen":
                raise
            if not limit:
                print(f"auto_strategy: {model}, {link}, {name}: {failure}", file=sys.stderr)
    least = min(seconds for seconds, in steps.values())
    rivals = [name for name, (seconds,) in steps.items() if name == "chosen" or seconds <= NEAR * least]
    for round_ in range(1, arguments.rounds if len(rivals) > 1 else 1):
        for name in turned(rivals, round_):
            steps[name].append(measured(model, *sides[name], link, cluster, arguments))
    return {"model": model, "link": link, "limit": limit, "chosen": name_of(chosen), "steps": steps,
            "predicted": row["step_seconds"]}


def ratios_of(row):
    """Of each rival that was measured in all rounds the median of the chosen one's step over its own in the same round."""
    chosen = row["steps"]["chosen"]
    return {name: statistics.median(mine / other for mine, other in zip(chosen, seconds)) for name, seconds in row["steps"].items()
            if name not in ("chosen", row["chosen"]) and len(seconds) == len(chosen)}


def ratio_of(row):
    """Of the chosen one over the fastest of all, itself included."""
    return max([1.0, *ratios_of(row).values()])


def row_text(row):
    ratios = ratios_of(row)
    steps = {name: 1e3 * statistics.median(seconds) for name, seconds in row["steps"].items()}
    best = max(ratios, key=ratios.get, default="")
    rival, rivals_step = (best, steps[best]) if best and ratios[best] > 1 else ("it", steps["chosen"])
    return (f"| {row['model']} | {row['link']} | {row['limit'] or 'none'} | {row['chosen']} | {steps['chosen']:.0f} | {rival} | "
            f"{rivals_step:.0f} | {ratio_of(row):.2f} | {len(row['steps']) - 1} |")


def tight_limit(model, cluster, arguments):
    plan = planned(model, USUAL["data parallel"], MODELS[model][1], cluster, arguments)
    return f"{arguments.tight * plan['memory']['total_bytes'] / 1e6:.0f}MB"


def measure_link(link, rows, keep, arguments):
    cluster = probed(link, arguments)
    for model in arguments.only:
        limits = [""] + ([tight_limit(model, cluster, arguments)] if arguments.tight > 0 else [])
        for limit in limits:
            if any((row["model"], row["link"], bool(row["limit"])) == (model, link, bool(limit)) for row in rows):
                continue
            try:
                rows.append(measure_row(model, link, limit, cluster, arguments))
                print(row_text(rows[-1]), flush=True)
                keep()
            except SideFailed as failure:
                print(f"auto_strategy: {model}, {link}, {limit or 'no limit'}: {failure}", file=sys.stderr)


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cache = arguments.out / "cache"
    os.environ["WEFT_CACHE_DIR"] = str(cache.resolve())
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text()) if arguments.goes_on and kept.exists() else []
    if not (arguments.goes_on and cache.exists()):
        for model in arguments.only:
            measure_ops_of_ranks(model, *MODELS[model], arguments)
    print(f"{processor()}, 2 ranks of {arguments.threads} threads\n")
    print("| model | link | memory of a rank | chosen | its step, ms | fastest | its step, ms | chosen / fastest | of so many measured |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(row_text(row))
    for link in arguments.link:
        with link_of(link):
            measure_link(link, rows, lambda: kept.write_text(json.dumps(rows, indent=1) + "\n"), arguments)
    if rows:
        ratios = [ratio_of(row) for row in rows]
        print(f"\n{len(rows)} rows: chosen over fastest, median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}; "
              f"within a tenth: {sum(ratio <= 1.1 for ratio in ratios)}")


if __name__ == "__main__":
    main()
