#!/usr/bin/env python3
"""oneDNN reorders in the steps of a training what the plan lists, and nothing else.

Counts what oneDNN itself says that it executes (ONEDNN_VERBOSE) while `weft bench` runs: as many reorders as there are
nodes in the plan that are one, times the steps, and those that make the copies of weights which are kept. A kernel that
reordered on the quiet, or a conversion of states between steps,
would be one too many. Exits 77 where oneDNN was built without its verbose mode.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Model, input, batch and more arguments; small, so that each takes a second.
CASES = [
    ("resnet18", "3,32,32", 2, []),
    ("mobilenet_v2", "3,32,32", 2, []),
    ("vit_tiny", "3,32,32", 2, []),
    ("transformer_lm", "16", 2, []),
    ("crnn", "1,32,128", 2, []),
    ("airbench94", "3,32,32", 2, ["--set", "accumulate=2"]),
]
WARM_UP_STEPS = 3  # of weft bench
# Ops whose nodes by oneDNN are one reorder each; recurrent ones lay out their weights, once for a whole sequence.
REORDERING = {"reorder", "cast", "renew", "lstm", "lstm_backward", "gru", "gru_backward"}


def run(program, arguments, verbose):
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", ONEDNN_VERBOSE="1" if verbose else "0")
    result = subprocess.run([program, "bench", *arguments, "--json"], capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        sys.exit(f"steady_state: weft bench {' '.join(arguments)} ended with {result.returncode}:\n{result.stderr}")
    lines = result.stdout.splitlines(keepends=True)
    said = [line for line in lines if line.startswith(("onednn_verbose,", "dnnl_verbose,"))]
    return json.loads("".join(line for line in lines if line not in said)), said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    program = parser.parse_args().weft
    best = run(program, ["mlp", "--plan-only", "--precision", "auto"], False)[0]["precision"]
    failures = 0
    for model, shape, batch, more in CASES:
        for precision in dict.fromkeys(("f32", best)):
            arguments = [model, "--input", shape, "--batch", str(batch), "--threads", "1", "--seconds", "0",
                         "--precision", precision, *more]
            report, said = run(program, arguments, True)
            executed = [line for line in said if ",exec," in line]
            if not executed:
                print("skipped: this oneDNN does not say what it executes")
                sys.exit(77)
            planned, first = (sum(kernel["nodes"] for kernel in report["work"][kernels]
                                  if kernel["op"] in REORDERING and kernel["kernel"].startswith("onednn"))
                              for kernels in ("kernels", "kernels_when_bound"))
            steps = WARM_UP_STEPS + report["steps"]
            expected = steps * planned + first
            reorders = sum(",reorder," in line for line in executed)
            failures += reorders != expected
            print(f"{model} {precision}: {planned} reorders by oneDNN in the plan, {first} of kept weights, "
                  f"{reorders} in {steps} steps{'' if reorders == expected else f', {expected} expected'}")
            if reorders != expected:
                print("".join(sorted({line for line in executed if ",reorder," in line})[:10]))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
