#!/usr/bin/env python3
"""Training over slow links, weft's and PyTorch's DistributedDataParallel over Gloo, as a Markdown table.

Hosts are network namespaces of this machine whose links tools/shaped_links.sh shapes; a rank in each, all with the same
model, input, batch per rank and threads. A bound is the larger of what one rank takes alone and of what its link takes
for what a rank sends: 2 (n - 1) / n of what is reduced, in f32, and (n - 1) times the rows that are gathered, in frames
of which 95.6 % are payload. A column "over bound" is the step's time over that; "at once" is what ranks take that
compute side by side and exchange nothing. Weft's step is measured as it is planned and, where that gathers rows for
late multiplies, also with all gradients reduced, as PyTorch's. Medians over the rounds. As root.

  benchmarks/shaped_links.py --rate 1gbit --rounds 3
  benchmarks/shaped_links.py --rate 100mbit --only resnet50 --precision bf16

With --buckets the table is another: all gradients reduced in buckets as weft plans them, of 25 MB as PyTorch's are, and
each tensor by itself.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from sides import ROOT, TRAIN_SPEED, Case, SideFailed, faster_format_of_peer, python_of_peer, run_json, run_ranks_json

CASES = {case.model: case for case in (
    Case("resnet50", "3,128,128", 16, 1000),
    Case("alexnet", "3,128,128", 16, 1000),
    Case("vgg16", "3,128,128", 8, 1000),
)}
LINKS = str(ROOT / "tools/shaped_links.sh")
HOST = os.environ.get("LINKS_NAME", "weft")
PAYLOAD = 1448 / 1514  # of a full frame: the rest are headers of TCP with timestamps, IP and Ethernet
UNITS = {"gbit": 1e9, "mbit": 1e6}


def bytes_per_second(rate):
    for unit, bits in UNITS.items():
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * bits / 8
    raise SideFailed(f"--rate {rate}: write it as 100mbit or 1gbit")


def weft_step(case, ranks, arguments, *more):
    """What `weft bench` says: alone, or on that many hosts."""
    of_all = case._replace(batch=case.batch * ranks)
    command = [arguments.weft, "bench", *of_all.options(arguments.threads), "--precision", arguments.precision,
               "--seconds", arguments.seconds, "--json", *more]
    return run_json([LINKS, "run", *command] if ranks > 1 else command, arguments.threads)


def weft_seconds_at_once(case, arguments):
    """Of as many processes as there are hosts, side by side on this machine, which exchange nothing: the slowest."""
    def measured(_):
        return weft_step(case, 1, arguments)["median_step_seconds"]

    with concurrent.futures.ThreadPoolExecutor(arguments.hosts) as pool:
        return max(pool.map(measured, range(arguments.hosts)))


def pytorch_seconds(case, setting, arguments):
    """Per step, on all hosts."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            ["ip", "netns", "exec", f"{HOST}{rank}", python_of_peer(), TRAIN_SPEED,
             *case.options(arguments.threads), *setting.flags(), "--seconds", str(arguments.seconds),
             "--rank", str(rank), "--ranks", str(arguments.hosts), "--meet", os.path.join(folder, "meet")]
            for rank in range(arguments.hosts)]
        return run_ranks_json(commands, arguments.threads)["step_seconds"]


def run_round(case, setting, arguments):
    others = arguments.hosts - 1

    def link_seconds(step):
        sent = 2 * others / arguments.hosts * step["reduced_bytes"] + others * step["gathered_bytes"]
        return sent / (bytes_per_second(arguments.rate) * PAYLOAD)

    alone = weft_step(case, 1, arguments)["median_step_seconds"]
    planned = weft_step(case, arguments.hosts, arguments)
    reduced = planned if planned["gathered_bytes"] == 0 else weft_step(case, arguments.hosts, arguments, "--without",
                                                                        "late_multiply")
    seconds = {"alone": alone, "at_once": weft_seconds_at_once(case, arguments),
               "weft": planned["median_step_seconds"], "reduced": reduced["median_step_seconds"],
               "pytorch": pytorch_seconds(case, setting, arguments)}
    link, link_reduced = link_seconds(planned), link_seconds(reduced)
    return {**seconds, "link": link, "link_reduced": link_reduced, "weft_over": seconds["weft"] / max(alone, link),
            "reduced_over": seconds["reduced"] / max(alone, link_reduced),
            "pytorch_over": seconds["pytorch"] / max(alone, link_reduced),
            "faster": seconds["pytorch"] / seconds["weft"], "faster_reduced": seconds["pytorch"] / seconds["reduced"]}


def run_bucket_round(case, _, arguments):
    def seconds(*more):
        return weft_step(case, arguments.hosts, arguments, "--without", "late_multiply", *more)["median_step_seconds"]

    planned, fixed, single = seconds(), seconds("--bucket", "25MB"), seconds("--bucket", "none")
    return {"planned": planned, "25MB": fixed, "none": single, "over 25MB": fixed / planned,
            "over none": single / planned}


def bucket_row(m):
    return (f"{m['planned']:.3f} | {m['25MB']:.3f} | **{m['over 25MB']:.2f}** | {m['none']:.3f} | "
            f"**{m['over none']:.2f}**")


def step_row(m):
    return (f"{m['alone']:.3f} | {m['at_once']:.3f} | {m['link']:.3f} | {m['weft']:.3f} | **{m['weft_over']:.2f}** | "
            f"**{m['faster']:.2f}** | {m['link_reduced']:.3f} | {m['reduced']:.3f} | **{m['reduced_over']:.2f}** | "
            f"**{m['faster_reduced']:.2f}** | {m['pytorch']:.3f} | {m['pytorch_over']:.2f}")


# What a round measures, the columns of the table, and what stands in them of the medians.
BUCKETS = (run_bucket_round, "as planned | of 25 MB | / planned | each tensor | / planned", bucket_row)
STEPS = (run_round, "alone | at once | link | weft | over bound | DDP / weft | link, all reduced | weft | over bound | "
                    "DDP / weft | PyTorch DDP | over bound", step_row)


def measure(table, arguments):
    """Prints a row for each case, as they are done; returns the figures."""
    run, columns, row = table
    print(f"| model | {columns} |\n|{'---|' * (columns.count('|') + 2)}", flush=True)
    report = []
    for name in arguments.only or CASES:
        setting = None if table is BUCKETS else faster_format_of_peer(CASES[name], arguments.precision, arguments)
        rounds = [run(CASES[name], setting, arguments) for _ in range(arguments.rounds)]
        medians = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        print(f"| {name} | {row(medians)} |", flush=True)
        report.append({"case": name, "pytorch": str(setting), "rounds": rounds})
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CASES, help="a case; repeatable; default: all")
    parser.add_argument("--rate", default="1gbit", help="of each host's link, such as 100mbit")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="how long each side measures in a round, at least")
    parser.add_argument("--buckets", action="store_true", help="compare buckets of weft's with each other")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    bytes_per_second(arguments.rate)
    os.environ.update(GLOO_SOCKET_IFNAME="eth0", OMP_NUM_THREADS=str(arguments.threads),
                      OPENBLAS_NUM_THREADS=str(arguments.threads))
    subprocess.run([LINKS, "up", str(arguments.hosts), arguments.rate], check=True)
    try:
        print(f"{arguments.hosts} hosts with links of {arguments.rate}, {arguments.precision}, {arguments.threads} threads per "
              f"rank, {arguments.rounds} rounds, medians of seconds per step\n")
        report = measure(BUCKETS if arguments.buckets else STEPS, arguments)
    finally:
        subprocess.run([LINKS, "down"], check=False)
    if arguments.json:
        figures = {"rate": arguments.rate, "hosts": arguments.hosts, "precision": arguments.precision,
                   "threads": arguments.threads, "cases": report}
        pathlib.Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except (SideFailed, subprocess.CalledProcessError) as failure:
        sys.exit(f"shaped_links: {failure}")
