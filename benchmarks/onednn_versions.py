#!/usr/bin/env python3
"""Two builds of weft with different versions of oneDNN beside each other: steps of the zoo's models, round by round.

Shows whether a newer oneDNN is worth installing. Both builds run the same network on the same threads in turn, in training
and in inference, in f32 and bf16. A row shows the median of the ratios of samples/s, that of the second build over the first.
`build/benchmarks/kernels` of either build compares single kernels.

  cmake --preset release -B build-onednn3 -DCMAKE_PREFIX_PATH=/path/to/onednn && cmake --build build-onednn3 --target weft_program
  benchmarks/onednn_versions.py --first build/weft --second build-onednn3/weft --rounds 5
"""
import argparse
import os
import statistics

from peer_settings import processor
from sides import Case, SideFailed, run_json, size_of


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", required=True, help="program of the build with the usual oneDNN")
    parser.add_argument("--second", required=True, help="program of the other build")
    parser.add_argument("--only", action="append", metavar="MODEL", help="repeatable; default: all")
    parser.add_argument("--mode", action="append", choices=["training", "inference"], help="repeatable; default: both")
    parser.add_argument("--precision", action="append", choices=["f32", "bf16"], help="repeatable; default: both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


def speed(program, case, mode, precision, arguments):
    forward = ["--forward"] if mode == "inference" else []
    return run_json([program, "bench", *case.options(arguments.threads), "--precision", precision, "--seconds",
                     arguments.seconds, "--json", *forward], arguments.threads)


def main():
    arguments = parse_arguments()
    models = {entry["name"]: entry["classes"] for entry in run_json([arguments.first, "models", "--json"])}
    ratios = {}
    for name in arguments.only or models:
        shape, batch = size_of(name)
        case = Case(name, shape, batch, models[name])
        for mode in arguments.mode or ["training", "inference"]:
            for precision in arguments.precision or ["f32", "bf16"]:
                try:
                    rounds = []
                    for index in range(arguments.rounds):
                        order = [arguments.first, arguments.second] if index % 2 == 0 else [arguments.second, arguments.first]
                        done = {program: speed(program, case, mode, precision, arguments) for program in order}
                        rounds.append([done[program] for program in (arguments.first, arguments.second)])
                except SideFailed as failure:
                    print(f"| {name} | {mode} | {precision} | **failed**: {str(failure).splitlines()[-1]} |", flush=True)
                    continue
                if not ratios:
                    print(f"{processor()}, {arguments.threads} threads; oneDNN {rounds[0][0]['onednn']} and "
                          f"{rounds[0][1]['onednn']}\n\n| model | mode | precision | first | second | ratio | lowest-highest |\n"
                          "|---|---|---|---:|---:|---:|---|")
                each = [second["samples_per_second"] / first["samples_per_second"] for first, second in rounds]
                ratios.setdefault((mode, precision), []).append(statistics.median(each))
                first, second = (statistics.median(row[side]["samples_per_second"] for row in rounds) for side in (0, 1))
                print(f"| {name} | {mode} | {precision} | {first:.1f} | {second:.1f} | **{statistics.median(each):.3f}** | "
                      f"{min(each):.3f}-{max(each):.3f} |", flush=True)
    for (mode, precision), values in ratios.items():
        print(f"\n{mode}, {precision}: median {statistics.median(values):.3f} over {len(values)} models")


if __name__ == "__main__":
    main()
