#!/usr/bin/env python3
"""optimizer.learning_rate = "auto" beside the best of 20 rates, on recipes that end in an accuracy, as a Markdown table (and
JSON with --json FILE).

  benchmarks/tuning_rates.py --shared DIR                      # optdigits, adult and fashion_lenet5: most of an hour, alone
  benchmarks/tuning_rates.py --shared DIR --only optdigits --seeds 1

The recipes are those of recipes/. The rates lie between 1e-4 and 1 on a logarithmic scale. Every run is made with each of the
seeds, and the best rate is that with the best mean over them on the test data. DIR holds the data as
benchmarks/tuning_tasks.py says.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATES = [10 ** (-4 + 4 * at / 19) for at in range(20)]
RECIPES = {
    "optdigits": "csv:{shared}/tabular/optdigits.tra?test={shared}/tabular/optdigits.tes&skip=1",
    "adult": "csv:{shared}/tabular/adult.data?test={shared}/tabular/adult.test",
    "fashion_lenet5": None,  # Debian's package
    "fashion_lstm": None,
}


def train(weft, recipe, data, rate, seed, threads):
    """Test accuracy. A run whose loss becomes NaN has accuracy 0."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = [weft, "train", str(ROOT / f"recipes/{recipe}.toml"), "--set", f"optimizer.learning_rate={rate}", "--seed",
                   str(seed), "--run", str(run), "--quiet", "--threads", str(threads)]
        if data is not None:
            command += ["--data", data]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not (run / "summary.json").exists():
            if rate == "auto" or "NaN" not in result.stdout:
                sys.exit(f"{' '.join(command)} ended with {result.returncode}:\n{result.stdout}")
            return 0.0
        return json.loads((run / "summary.json").read_text(encoding="utf-8"))["test_accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--shared", required=True, help="the folder of the data")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", action="append", choices=RECIPES, help="a recipe; repeatable")
    parser.add_argument("--json", help="write the rows there")
    arguments = parser.parse_args()
    print(f'Test accuracy, means of {arguments.seeds} seeds\n\n| recipe | "auto", % | best of 20 rates, % | at the rate | '
          'difference, points |\n|---|---|---|---|---|')
    rows = []
    for recipe in arguments.only or ["optdigits", "adult", "fashion_lenet5"]:
        data = RECIPES[recipe]
        data = data.format(shared=pathlib.Path(arguments.shared).absolute()) if data else None

        def mean(rate):
            return statistics.mean(train(arguments.weft, recipe, data, rate, seed, arguments.threads)
                                   for seed in range(1, arguments.seeds + 1))

        auto, fixed = mean("auto"), {rate: mean(f"{rate:.6g}") for rate in RATES}
        best = max(fixed, key=fixed.get)
        rows.append({"recipe": recipe, "auto": auto, "best": fixed[best], "rate": best, "all": fixed})
        print(f"| {recipe} | {100 * auto:.2f} | {100 * fixed[best]:.2f} | {best:.2g} | {100 * (auto - fixed[best]):+.2f} |",
              flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
