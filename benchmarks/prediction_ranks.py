#!/usr/bin/env python3
"""A step of two ranks as `weft plan` predicts it beside what `weft bench` then measures, by strategy and link, as Markdown.

Links: `memory` is this host's own. Others are network namespaces whose links tools/shaped_links.sh shapes, which needs root.
First ops are measured while two ranks compute at once (`weft rates --ops --ranks 2`) into a cache of this benchmark's own, and shaped links
by `weft cluster probe`, as a user would. Each row is predicted before it is measured. An error is predicted over measured,
less one. `inside` says whether the predicted range of 80 % held the median step. benchmarks/strategy_memory.py does the
same for memory.

  benchmarks/prediction_ranks.py --out build/prediction_ranks                         # half an hour on two cores
  benchmarks/prediction_ranks.py --out build/prediction_ranks --link memory --only transformer_lm --seconds 2

The machine has to be quiet. --goes-on keeps ops, links and rows that --out holds.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from peer_settings import processor
from sides import PIPELINE_SCHEDULES, ROOT, SideFailed, measure_ops, run_json

LINKS = str(ROOT / "tools/shaped_links.sh")
MODELS = {"transformer_lm": ("128", 16), "resnet18": ("3,64,64", 32), "alexnet": ("3,128,128", 32)}
STRATEGIES = {
    "data parallel": ["late_multiply=false"],
    "late multiply": [],
    "zero 1": ["shard.zero=1"],
    "zero 2": ["shard.zero=2", "accumulate=2"],
    "zero 3": ["shard.zero=3"],
    "tensor 2": ["mesh.tensor=2"],
    **{f"pipeline 2, {schedule}": ["mesh.pipeline=2", f"pipeline.schedule={schedule}"]
       for schedule in PIPELINE_SCHEDULES},
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", choices=list(MODELS), help="a model; repeatable; default: all")
    parser.add_argument("--link", action="append", metavar="LINK", help="memory, 1gbit, 100mbit...; repeatable; default: these three")
    parser.add_argument("--strategy", action="append", choices=list(STRATEGIES), help="repeatable; default: all")
    parser.add_argument("--seconds", type=float, default=5, help="how long a row's steps are measured")
    parser.add_argument("--rate-seconds", type=float, default=60, help="for the ops of a model, at most")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--goes-on", action="store_true")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    arguments.only = arguments.only or list(MODELS)
    arguments.link = arguments.link or ["memory", "1gbit", "100mbit"]
    arguments.weft = os.path.abspath(arguments.weft)
    return arguments


def on_two_ranks(link, arguments):
    """The words before a command that runs on both ranks."""
    return ["mpirun", "-n", "2", "--bind-to", "none"] if link == "memory" else [LINKS, "run"]


def probed(link, arguments):
    """The cluster file of the link; None where the ranks share this host."""
    if link == "memory":
        return None
    cluster = arguments.out / f"{link}.toml"
    if not (arguments.goes_on and cluster.exists()):
        subprocess.run([*on_two_ranks(link, arguments), arguments.weft, "cluster", "probe", "--output", cluster.resolve()],
                       check=True, stdout=sys.stderr)
    return cluster


def place_of(cluster, arguments):
    """The words by which `weft plan` knows the ranks' place."""
    if cluster is None:
        return ["--ranks", "2"]
    # Hosts of one rank each, which compute at once on this machine all the same.
    return ["--ranks", "2", "--cluster", str(cluster), "--op-times", str(op_times_of_two(arguments))]


def op_times_of_two(arguments):
    """The file that `weft rates --ops --ranks 2` kept, with the threads of a rank; SideFailed where it kept none."""
    for kept in (arguments.out / "cache").glob("ops-2-ranks-*.jsonl"):
        with kept.open(encoding="utf-8") as file:
            if json.loads(file.readline())["machine"].endswith(f" {arguments.threads} threads"):
                return kept
    raise SideFailed("no ops of two ranks were measured; run it again without --goes-on")


def measure_row(model, strategy, link, cluster, arguments):
    shape, batch = MODELS[model]
    options = [model, "--input", shape, "--batch", str(batch), "--threads", str(arguments.threads)]
    for setting in STRATEGIES[strategy]:
        options += ["--set", setting]
    plan = run_json([arguments.weft, "plan", *options, *place_of(cluster, arguments), "--json"])
    bench = run_json([*on_two_ranks(link, arguments), arguments.weft, "bench", *options, "--seconds", str(arguments.seconds), "--json"],
                     arguments.threads)
    measured, predicted = bench["median_step_seconds"], plan["step_seconds"]
    return {"model": model, "strategy": strategy, "link": link, "predicted": predicted, "measured": measured,
            "error": predicted["expected"] / measured - 1,
            "inside": predicted["low"] <= measured <= predicted["high"]}


def row_text(row):
    low, expected, high = (1e3 * row["predicted"][key] for key in ("low", "expected", "high"))
    return (f"| {row['model']} | {row['link']} | {row['strategy']} | {expected:.1f} ({low:.1f}-{high:.1f}) | "
            f"{1e3 * row['measured']:.1f} | {100 * row['error']:+.1f} % | {'yes' if row['inside'] else 'no'} |")


def summary_of(rows):
    errors = [abs(row["error"]) for row in rows]
    worst = max(rows, key=lambda row: abs(row["error"]))
    return (f"{len(rows)} rows: median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} % "
            f"({worst['model']}, {worst['link']}, {worst['strategy']}); within the range of 80 %: "
            f"{sum(row['inside'] for row in rows)}")


def measure_link(link, rows, keep, arguments):
    cluster = probed(link, arguments)
    for model in arguments.only:
        for strategy in arguments.strategy or STRATEGIES:
            if any((row["model"], row["strategy"], row["link"]) == (model, strategy, link) for row in rows):
                continue
            try:
                rows.append(measure_row(model, strategy, link, cluster, arguments))
                print(row_text(rows[-1]), flush=True)
                keep()
            except SideFailed as failure:
                print(f"prediction_ranks: {model}, {strategy}, {link}: {failure}", file=sys.stderr)


def measure_table(head, known, measure_link, row_text, arguments):
    """The rows that --out holds or measure_link(link, rows, keep, arguments) adds, printed below `head`. `known`: sizes of
    the models of --only, whose ops are measured first."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ["WEFT_CACHE_DIR"] = str((arguments.out / "cache").resolve())
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text()) if arguments.goes_on and kept.exists() else []
    if not (arguments.goes_on and (arguments.out / "cache").exists()):
        for model in arguments.only:
            shape, batch = known[model]
            # A rank of two has half of the batch, a micro-batch of a pipeline a quarter.
            measure_ops(model, shape, [batch // 4, batch // 2, batch], ["f32"], arguments, ranks=2)
            # Layers that ranks share have shapes of their own, and the whole batch.
            measure_ops(model, shape, [batch], ["f32"], arguments, STRATEGIES["tensor 2"], ranks=2)
    print(f"{processor()}, 2 ranks of {arguments.threads} threads\n")
    print(head)
    for row in rows:
        print(row_text(row))
    for link in arguments.link:
        if link != "memory":
            subprocess.run([LINKS, "up", "2", link], check=True)
        try:
            measure_link(link, rows, lambda: kept.write_text(json.dumps(rows, indent=1) + "\n"), arguments)
        finally:
            if link != "memory":
                subprocess.run([LINKS, "down"], check=False)
    return rows


def main():
    arguments = parse_arguments()
    head = "| model | link | strategy | predicted, ms (80 %) | measured, ms | error | inside |\n|---|---|---|---|---|---|---|"
    rows = measure_table(head, MODELS, measure_link, row_text, arguments)
    if rows:
        print(f"\n{summary_of(rows)}")


if __name__ == "__main__":
    main()
