#!/usr/bin/env python3
"""Text generation with kept keys and values: weft beside PyTorch, on the same weights and threads.

Trains transformer_lm (preset small: 10.7 million parameters) on a text with a window of 512 characters for some steps,
since the speed does not depend on what it has learned. Then both sides write --length characters behind a short
beginning, in turn, round by round. PyTorch runs in each of its settings (a growing or a static cache, eager or compiled)
in the first round, and in the fastest one from then on. A row shows medians; its ratio is the median of weft's tokens per
second over PyTorch's of the same round.

  python3 benchmarks/generation.py TEXT.txt --out build/generation
  python3 benchmarks/generation.py TEXT.txt --out build/generation --preset tiny --rounds 5
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess

from peer_settings import processor
from sides import ROOT, precisions_of_processor, python_of_peer, run_json, version_of_peer

PEER = ROOT / "benchmarks/peer/generate_speed.py"
HEADS = {"tiny": 4, "small": 6, "base": 12}
BEGINNING = 6  # characters


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, help="what the model learns, such as tinyshakespeare.txt")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the run and its weights")
    parser.add_argument("--preset", choices=HEADS, default="small")
    parser.add_argument("--length", type=int, default=500, help="characters to write; default: 500")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--precision", action="append", choices=["f32", "bf16"],
                        help="repeatable; default: both, where the processor has bf16")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def train(arguments):
    """The run directory, and its weights as safetensors."""
    run, weights = arguments.out / f"run_{arguments.preset}", arguments.out / f"{arguments.preset}.safetensors"
    if not weights.exists():
        arguments.out.mkdir(parents=True, exist_ok=True)
        subprocess.run([arguments.weft, "train", "--model", "transformer_lm", "--data",
                        f"text:{arguments.text}?length=512", "--run", run, "--batch", "4", "--epochs", "1", "--quiet",
                        "--set", f"model.preset={arguments.preset}", "--max-steps", "20",
                        "--set", "optimizer.name=adamw", "--set", "optimizer.learning_rate=0.001"], check=True)
        subprocess.run([arguments.weft, "export", run, weights], check=True)
    return run, weights


def write_beginning(arguments):
    path = arguments.out / "beginning.txt"
    path.write_text(arguments.text.read_text(encoding="utf-8")[:BEGINNING], encoding="utf-8")
    return path


def weft_speed(run, beginning, precision, arguments):
    """The fastest of three texts, as of the peer: a model is loaded and compiled before the first."""
    texts = run_json([arguments.weft, "predict", run, *[beginning] * 4, "--length", arguments.length, "--precision", precision,
                      "--threads", arguments.threads, "--json"], arguments.threads)
    return max(text["tokens_per_second"] for text in texts[1:])


def peer_speed(weights, flags, precision, arguments):
    precision_flags = ["--bf16"] if precision == "bf16" else []
    return run_json([python_of_peer(), PEER, "--weights", weights, "--heads", HEADS[arguments.preset], "--length",
                     arguments.length, "--threads", arguments.threads, *flags, *precision_flags],
                    arguments.threads)["tokens_per_second"]


def measure(precision, run, weights, beginning, arguments):
    settings = [["--cache", cache, *compiled] for cache, compiled in
                itertools.product(["growing", "static"], [[], ["--compile"]]) if not (cache == "growing" and compiled)]
    trials = {" ".join(flags): peer_speed(weights, flags, precision, arguments) for flags in settings}
    best = max(trials, key=trials.get)
    rounds = []
    for index in range(arguments.rounds):
        sides = {"weft": lambda: weft_speed(run, beginning, precision, arguments),
                 "pytorch": lambda: peer_speed(weights, best.split(), precision, arguments)}
        order = list(sides) if index % 2 == 0 else list(reversed(sides))
        rounds.append({name: sides[name]() for name in order})
    ratios = [each["weft"] / each["pytorch"] for each in rounds]
    return {"precision": precision, "setting": best, "trials": trials, "rounds": rounds, "ratios": ratios,
            "weft": statistics.median(each["weft"] for each in rounds),
            "pytorch": statistics.median(each["pytorch"] for each in rounds), "value": statistics.median(ratios)}


def main():
    arguments = parse_arguments()
    run, weights = train(arguments)
    beginning = write_beginning(arguments)
    precisions = arguments.precision or precisions_of_processor("f32", "bf16")
    print(f"{processor()}, {arguments.threads} threads, {version_of_peer()}; transformer_lm {arguments.preset}, "
          f"{arguments.length} characters behind {BEGINNING}\n\n"
          "| precision | weft, tokens/s | PyTorch, tokens/s | ratio | lowest-highest | PyTorch's setting |\n"
          "|---|---:|---:|---:|---|---|", flush=True)
    rows = []
    for precision in precisions:
        row = measure(precision, run, weights, beginning, arguments)
        rows.append(row)
        print(f"| {precision} | {row['weft']:.0f} | {row['pytorch']:.0f} | **{row['value']:.2f}** | "
              f"{min(row['ratios']):.2f}-{max(row['ratios']):.2f} | {row['setting']} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"processor": processor(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
