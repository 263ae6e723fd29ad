#!/usr/bin/env python3
"""A step of two ranks as `weft plan` predicts it beside what `weft bench` then measures, by strategy and link, as Markdown.

Links: `memory` is this host's own. Others are network namespaces whose links tools/shaped_links.sh shapes, which needs root.
In each round, and for each model, ops are first measured while two ranks compute at once (`weft rates --ops --ranks 2`) into a
cache of that round's own, and shaped links by `weft cluster probe`, as a user would. Each row is predicted before it is
measured. An error is predicted over measured, less one; of a row the middle one of its rounds is shown, since the pace of a
shared machine changes from one quarter of an hour to the next. `inside` says whether the predicted range of 80 % held the
median step in most rounds. benchmarks/strategy_memory.py does the same for memory.

  benchmarks/prediction_ranks.py --out build/prediction_ranks                         # an hour and a half on two cores
  benchmarks/prediction_ranks.py --out build/prediction_ranks --link memory           # twenty minutes
  benchmarks/prediction_ranks.py --out build/prediction_ranks --link memory --only transformer_lm --seconds 2 --rounds 1

The machine has to be quiet. --goes-on keeps links and rows that --out holds.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

from peer_settings import processor
from sides import PIPELINE_SCHEDULES, ROOT, SideFailed, measure_ops, run_json, turned

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
    parser.add_argument("--seconds", type=float, default=3, help="how long a row's steps are measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate-seconds", type=float, default=30, help="for the ops of a model, at most")
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
    for kept in pathlib.Path(os.environ["WEFT_CACHE_DIR"]).glob("ops-2-ranks-*.jsonl"):
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


def key_of(row):
    return row["model"], row["link"], row["strategy"]


def median_row(rounds):
    """Of one row's rounds the one whose error is the middle one; within the range where most of them are."""
    middle = sorted(rounds, key=lambda row: row["error"])[len(rounds) // 2]
    return {**middle, "inside": 2 * sum(row["inside"] for row in rounds) > len(rounds)}


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


@contextlib.contextmanager
def link_of(link):
    """The link is there meanwhile."""
    if link != "memory":
        subprocess.run([LINKS, "up", "2", link], check=True)
    try:
        yield
    finally:
        if link != "memory":
            subprocess.run([LINKS, "down"], check=False)


def measure_ops_of_ranks(model, shape, batch, arguments):
    # A rank of two has half of the batch, a micro-batch of a pipeline a quarter.
    measure_ops(model, shape, [batch // 4, batch // 2, batch], ["f32"], arguments, ranks=2)
    # Layers that ranks share have shapes of their own, and the whole batch.
    measure_ops(model, shape, [batch], ["f32"], arguments, STRATEGIES["tensor 2"], ranks=2)


def measure_round(round_, link, rows, keep, arguments):
    """Of each model first the ops, into a cache of this round and link, then all rows."""
    cluster = probed(link, arguments)
    for model in turned(arguments.only, round_):
        strategies = turned(list(arguments.strategy or STRATEGIES), round_)
        known = {(key_of(row), row["round"]) for row in rows}
        missing = [strategy for strategy in strategies if ((model, link, strategy), round_) not in known]
        if not missing:
            continue
        os.environ["WEFT_CACHE_DIR"] = str((arguments.out / f"cache-{link}-{round_ + 1}").resolve())
        measure_ops_of_ranks(model, *MODELS[model], arguments)
        for strategy in missing:
            try:
                rows.append({"round": round_, **measure_row(model, strategy, link, cluster, arguments)})
                print(f"round {round_ + 1}: {row_text(rows[-1])}", file=sys.stderr, flush=True)
                keep()
            except SideFailed as failure:
                print(f"prediction_ranks: {model}, {strategy}, {link}: {failure}", file=sys.stderr)


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text()) if arguments.goes_on and kept.exists() else []
    for round_ in range(arguments.rounds):
        for link in arguments.link:
            with link_of(link):
                measure_round(round_, link, rows, lambda: kept.write_text(json.dumps(rows, indent=1) + "\n"), arguments)
    rounds = {}
    for row in rows:
        rounds.setdefault(key_of(row), []).append(row)
    table = [median_row(of_row) for of_row in rounds.values()]
    print(f"{processor()}, 2 ranks of {arguments.threads} threads, {arguments.rounds} rounds\n")
    print("| model | link | strategy | predicted, ms (80 %) | measured, ms | error | inside |\n|---|---|---|---|---|---|---|")
    for row in table:
        print(row_text(row))
    for link in arguments.link:
        of_link = [row for row in table if row["link"] == link]
        if of_link:
            print(f"\n{link}: {summary_of(of_link)}")


if __name__ == "__main__":
    main()
