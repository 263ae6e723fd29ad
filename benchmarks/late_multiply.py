#!/usr/bin/env python3
"""Bytes that a host sends per training step, with rows gathered for late multiplies and without, beside the formulas.

Hosts are network namespaces of this machine whose links tools/shaped_links.sh shapes; a rank in each. What a rank sends is
read from the counters of its link, as the difference between a run of many steps and one of few, divided by the steps: what
is said before the first step cancels. "formula" is 2 (n - 1) / n of the bytes that are reduced and (n - 1) times those of
the rows that are gathered, as `weft bench` reports them. As root.

  benchmarks/late_multiply.py --model alexnet --hosts 4 --rate 1gbit
"""
import argparse
import os
import statistics
import subprocess
import sys

from sides import ROOT, Case, SideFailed, run_json

LINKS = str(ROOT / "tools/shaped_links.sh")


def sent_bytes(hosts):
    """Of every host's link so far."""
    def of(host):
        return int(subprocess.run(["ip", "netns", "exec", f"weft{host}", "cat", "/sys/class/net/eth0/statistics/tx_bytes"],
                                  check=True, capture_output=True, text=True).stdout)
    return [of(host) for host in range(hosts)]


def bench(case, arguments, seconds, without):
    """What `weft bench` says on that many hosts, and what each of them sent meanwhile."""
    command = [LINKS, "run", arguments.weft, "bench", *case.options(arguments.threads), "--precision", arguments.precision,
               "--set", f"accumulate={arguments.accumulate}", "--seconds", str(seconds), "--json",
               *(["--without", "late_multiply"] if without else [])]
    before = sent_bytes(arguments.hosts)
    result = run_json(command, arguments.threads)
    return result, [after - b for after, b in zip(sent_bytes(arguments.hosts), before)]


def measure(case, arguments, without):
    few, sent_in_few = bench(case, arguments, 0, without)
    many, sent_in_many = bench(case, arguments, arguments.seconds, without)
    steps = many["steps"] - few["steps"]
    if steps <= 0:
        raise SideFailed("--seconds is too short for more than the fewest steps")
    ranks = arguments.hosts
    formula = 2 * (ranks - 1) / ranks * many["reduced_bytes"] + (ranks - 1) * many["gathered_bytes"]
    return {"seconds": many["median_step_seconds"], "formula": formula, "reduced": many["reduced_bytes"],
            "gathered": many["gathered_bytes"],
            "sent": statistics.mean(m - f for m, f in zip(sent_in_many, sent_in_few)) / steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="alexnet")
    parser.add_argument("--input", default="3,128,128")
    parser.add_argument("--batch", type=int, default=16, help="of each rank")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--rate", default="1gbit", help="of each host's link, such as 100mbit")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--seconds", type=float, default=40, help="of the longer run")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    arguments = parser.parse_args()
    case = Case(arguments.model, arguments.input, arguments.batch * arguments.hosts, arguments.classes)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    subprocess.run([LINKS, "up", str(arguments.hosts), arguments.rate], check=True)
    try:
        print(f"{arguments.model}, {arguments.input}, {arguments.accumulate} x {arguments.batch} per rank, "
              f"{arguments.hosts} hosts with links of {arguments.rate}, {arguments.precision}\n")
        print("| late multiply | reduced MB | gathered MB | formula MB | sent MB | sent / formula | seconds per step |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for without in (True, False):
            m = measure(case, arguments, without)
            print(f"| {'no' if without else 'yes'} | {m['reduced'] / 1e6:.2f} | {m['gathered'] / 1e6:.2f} | "
                  f"{m['formula'] / 1e6:.2f} | {m['sent'] / 1e6:.2f} | **{m['sent'] / m['formula']:.3f}** | "
                  f"{m['seconds']:.3f} |", flush=True)
    finally:
        subprocess.run([LINKS, "down"], check=False)


if __name__ == "__main__":
    try:
        main()
    except (SideFailed, subprocess.CalledProcessError) as failure:
        sys.exit(f"late_multiply: {failure}")
