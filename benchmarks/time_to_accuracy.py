#!/usr/bin/env python3
"""When a run will reach an accuracy, as weft says it a tenth into the run, beside when it does, as a Markdown table.

Of each recipe, runs with seeds of their own come first (--history). Then new seeds train towards a validation accuracy
(stop.target), in the same folder: weft knows the earlier runs, and a tenth into the run it writes its 80 % range for the time
to the target (prediction.json). The run measures the time itself (summary.json). `inside` counts how often the range held it.
`width` is the upper over the lower end of the range.

The targets are round numbers, fixed beforehand, that runs of other seeds reached in a third to a half of their steps. A target
taken from the earlier runs, such as what all of them had reached, would be one for which these runs were lucky.

  benchmarks/time_to_accuracy.py --tables ../shared/data/tabular --out build/time_to_accuracy       # a quarter of an hour
  benchmarks/time_to_accuracy.py --tables DIR --only optdigits --seeds 2

--tables has the files of UCI's optdigits and adult. Fashion-MNIST comes from Debian's package. Runs that are there already
are not trained again. The machine has to be quiet. Exits 1 where fewer than 14 of 20 ranges, in proportion, held the time.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import NamedTuple, Optional

from peer_settings import processor
from sides import ROOT

MARK = 14 / 20


class Case(NamedTuple):
    recipe: str
    data: Optional[str]  # None: as the recipe says
    every_steps: int  # evaluations of the validation part
    target: float  # validation accuracy
    keys: tuple = ()  # set besides; the networks of tables are wide, so that a run takes seconds


CASES = {
    "optdigits": Case("optdigits", "csv:{tables}/optdigits.tra?test={tables}/optdigits.tes&skip=1", 10, 0.985,
                      ("model.hidden=1024,1024", "optimizer.learning_rate=0.0003")),
    "adult": Case("adult", "csv:{tables}/adult.data?test={tables}/adult.test", 20, 0.855,
                  ("model.hidden=512,512", "optimizer.learning_rate=0.0003")),
    "fashion_lenet5": Case("fashion_lenet5", None, 200, 0.88),
    "fashion_lstm": Case("fashion_lstm", None, 100, 0.86),
    "dates": Case("dates", "pairs:{out}/dates.tsv?test={out}/dates_test.tsv", 20, 0.95),
}


class Measured(NamedTuple):
    low: float
    expected: float
    high: float
    seconds: float

    def is_inside(self):
        return self.low <= self.seconds <= self.high


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/time_to_accuracy", help="folder; default: %(default)s")
    parser.add_argument("--tables", type=pathlib.Path, required=True, help="folder of UCI's files")
    parser.add_argument("--only", action="append", choices=list(CASES), help="repeatable; default: all")
    parser.add_argument("--history", type=int, default=4, help="earlier runs of each recipe; default: %(default)s")
    parser.add_argument("--seeds", type=int, default=4, help="runs that are predicted; default: %(default)s")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--json", type=pathlib.Path, help="write all figures here")
    return parser.parse_args()


def train(name, seed, more, arguments):
    case, folder = CASES[name], arguments.out / name / f"seed{seed}"
    if not (folder / "summary.json").exists():
        command = [arguments.weft, "train", ROOT / f"recipes/{case.recipe}.toml", "--run", folder, "--seed", str(seed), "--quiet",
                   "--set", "validation=0.1", "--set", f"evaluation.every_steps={case.every_steps}", "--set",
                   "stop.monitor=validation_accuracy", "--threads", str(arguments.threads), *more]
        for key in case.keys:
            command += ["--set", key]
        if case.data:
            command += ["--data", case.data.format(tables=arguments.tables.resolve(), out=arguments.out.resolve())]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(f"{name}, seed {seed}: {result.stderr.strip().splitlines()[-1]}")
    return folder


def measure(name, seed, arguments):
    """None where the run did not reach the target."""
    folder = train(name, seed, ["--set", f"stop.target={CASES[name].target}"], arguments)
    reached = json.loads((folder / "summary.json").read_text()).get("time_to_target")
    said = json.loads((folder / "prediction.json").read_text()).get("to_target_at_a_tenth")
    if not reached or not said:
        return None
    return Measured(said["seconds"]["low"], said["seconds"]["expected"], said["seconds"]["high"], reached["seconds"])


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = arguments.only or list(CASES)
    if "dates" in names and not (arguments.out / "dates.tsv").exists():
        subprocess.run([sys.executable, ROOT / "tools/make_date_pairs.py", arguments.out / "dates.tsv",
                        arguments.out / "dates_test.tsv"], check=True)
    print(f"{processor()}, {arguments.threads} threads; {arguments.history} earlier runs of each recipe\n")
    print("| recipe | target | seed | said at a tenth, s (80 %) | measured, s | inside |\n|---|---|---|---|---|---|")
    inside, widths, rows, missed = 0, [], [], 0
    for name in names:
        target = CASES[name].target
        for index in range(arguments.history):
            train(name, 100 + index, [], arguments)
        for seed in range(1, arguments.seeds + 1):
            found = measure(name, seed, arguments)
            if not found:
                missed += 1
                print(f"| {name} | {target} | {seed} | | not reached, or too short | no |", flush=True)
                continue
            inside += found.is_inside()
            widths.append(found.high / found.low)
            rows.append({"recipe": name, "target": target, "seed": seed, **found._asdict()})
            print(f"| {name} | {target} | {seed} | {found.expected:.2f} ({found.low:.2f} to {found.high:.2f}) |"
                  f" {found.seconds:.2f} | {'yes' if found.is_inside() else 'no'} |", flush=True)
    count = len(rows) + missed
    print(f"\nInside: {inside} of {count}. Width: {statistics.median(widths) if widths else float('nan'):.2f} in the median.")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": processor(), "rows": rows, "missed": missed}, indent=1) + "\n")
    return 0 if inside >= MARK * count else 1


if __name__ == "__main__":
    sys.exit(main())
