#!/usr/bin/env python3
"""All-reduce of f32 inside a host: weft beside Open MPI's and Gloo's, as a Markdown table (and JSON with --json FILE).

  benchmarks/all_reduce.py --ranks 2

Every rank writes its operand before each run; a time is that of the slowest rank, the median over rounds. Open MPI runs
with its own choice and with each of its algorithms in turn (coll_tuned_allreduce_algorithm), Gloo with each of its four over
TCP on the loopback, which is its only transport in Debian: the columns hold the best of each at that size. weft's
operands lie in memory that ranks share, as training's do, or, "foreign", anywhere; those of the others anywhere. weft and
Open MPI run in turn in the same processes, Gloo right after. Needs libgloo-dev; without it its column is empty.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from sides import MPIRUN_AS_ROOT

ROOT = pathlib.Path(__file__).resolve().parent.parent
MPI_ALGORITHMS = {None: "own choice", 2: "non-overlapping", 3: "recursive doubling", 4: "ring", 5: "segmented ring",
                  6: "Rabenseifner"}
GLOO_ALGORITHMS = ("ring", "bcube", "ring_chunked", "halving_doubling")


def environment(algorithm=None):
    result = {**os.environ, **MPIRUN_AS_ROOT, "OMP_NUM_THREADS": "1"}
    if algorithm:
        result["OMPI_MCA_coll_tuned_use_dynamic_rules"] = "1"
        result["OMPI_MCA_coll_tuned_allreduce_algorithm"] = str(algorithm)
    return result


def weft_and_mpi(arguments, algorithm):
    command = ["mpirun", "--oversubscribe", "-n", str(arguments.ranks), arguments.weft, "cluster", "bench", "--json",
               "--rounds", str(arguments.rounds), "--largest", str(arguments.largest)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment(algorithm))
    if result.returncode != 0:
        sys.exit(f"all_reduce: {' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return json.loads(result.stdout)


def compile_gloo(directory):
    program = directory / "gloo_all_reduce"
    result = subprocess.run(["g++", "-std=c++17", "-O2", str(ROOT / "benchmarks/peer/gloo_all_reduce.cpp"), "-o",
                             str(program), "-lgloo", "-lpthread"], capture_output=True, text=True)
    if result.returncode != 0:
        print(f"all_reduce: no Gloo: {result.stderr.splitlines()[0] if result.stderr else 'g++ failed'}", file=sys.stderr)
        return None
    return program


def gloo(program, arguments, algorithm, sizes):
    """Per size the seconds of each round, of the slowest rank."""
    with tempfile.TemporaryDirectory() as store:
        ranks = [subprocess.Popen([str(program), str(rank), str(arguments.ranks), store, str(arguments.rounds), algorithm,
                                   "lo", *map(str, sizes)], stdout=subprocess.PIPE, text=True)
                 for rank in range(arguments.ranks)]
        outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        print(f"all_reduce: Gloo's {algorithm} failed", file=sys.stderr)
        return {}
    seconds = {}
    for lines in zip(*(output.splitlines() for output in outputs)):
        numbers = [line.split() for line in lines]
        seconds[int(numbers[0][0])] = [max(map(float, of_ranks)) for of_ranks in zip(*(n[1:] for n in numbers))]
    return seconds


def human_bytes(count):
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


def human_seconds(value):
    return f"{value * 1e6:.1f} us" if value < 1e-3 else f"{value * 1e3:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--largest", type=int, default=256 << 20, help="bytes")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()

    reports = {name: weft_and_mpi(arguments, algorithm) for algorithm, name in MPI_ALGORITHMS.items()}
    first = next(iter(reports.values()))
    sizes = [row["bytes"] for row in first["rows"]]
    gloos = {}
    with tempfile.TemporaryDirectory() as directory:
        if program := compile_gloo(pathlib.Path(directory)):
            gloos = {algorithm: gloo(program, arguments, algorithm, sizes) for algorithm in GLOO_ALGORITHMS}

    print(f"{arguments.ranks} ranks on one host, {first['mpi']}, Gloo over TCP; medians of {arguments.rounds} rounds.\n")
    print("| tensor | weft | GB/s | weft, foreign memory | Open MPI | Gloo | over Open MPI | over Gloo |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for index, size in enumerate(sizes):
        def median(report, way):
            return statistics.median(report["rows"][index]["seconds"][way])

        # All runs of weft count; a peer's best algorithm is taken by its median.
        weft, foreign = (statistics.median([s for report in reports.values() for s in report["rows"][index]["seconds"][way]])
                         for way in ("weft", "weft, foreign memory"))
        mpi = min((median(report, first["mpi"]), name) for name, report in reports.items())
        of_gloo = min(((statistics.median(seconds[size]), name) for name, seconds in gloos.items() if size in seconds),
                      default=(None, ""))
        rows.append({"bytes": size, "weft": weft, "weft_foreign": foreign, "open_mpi": mpi, "gloo": of_gloo})
        gloo_text = f"{human_seconds(of_gloo[0])} ({of_gloo[1]})" if of_gloo[0] else "-"
        ratio = f"{of_gloo[0] / weft:.2f}" if of_gloo[0] else "-"
        print(f"| {human_bytes(size)} | {human_seconds(weft)} | {size / weft / 1e9:.2f} | {human_seconds(foreign)} | "
              f"{human_seconds(mpi[0])} ({mpi[1]}) | {gloo_text} | **{mpi[0] / weft:.2f}** | **{ratio}** |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"ranks": arguments.ranks, "rounds": arguments.rounds, "rows": rows,
                                              "weft_and_mpi": reports, "gloo": gloos}, indent=1) + "\n")


if __name__ == "__main__":
    main()
