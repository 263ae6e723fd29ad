#!/usr/bin/python3
"""Trains a recipe and compares what it reaches with what the recipe's own first comment states.

The statement is read from `weft recipes --json`: "98.1 % test accuracy" or "1.65 nats per character". Data are looked for
in the folder that the environment variable WEFT_DATA names; Fashion-MNIST is Debian's, and what a tool of this project
makes is made anew. Exits 77 where data are absent.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What another number of threads, which sums in another order, may change.
ACCURACY_POINTS = 0.5
NATS = 0.02

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
# The tool that makes a recipe's data, the files of WEFT_DATA that it reads, and what it writes.
MADE = {
    "dates": ("make_date_pairs.py", [], ["dates.tsv", "dates_test.tsv"]),
    "digit_lines": ("make_digit_lines.py", ["optdigits.tra", "optdigits.tes"], ["digits"]),
}


def weft(program, *arguments, directory="."):
    return subprocess.run([program, *arguments], capture_output=True, text=True, cwd=directory)


def stated(description):
    """What summary.json calls it, its value, and how far below (above, for a loss) the result may lie."""
    if found := re.search(r"([0-9.]+) % test accuracy", description):
        return "test_accuracy", float(found[1]) / 100, -ACCURACY_POINTS / 100
    if found := re.search(r"([0-9.]+) nats", description):
        return "test_loss", float(found[1]), NATS
    sys.exit(f"the recipe states no result: {description}")


def make_data(recipe, source, target):
    """The folder where the recipe's data are."""
    if recipe not in MADE:
        return source
    tool, read, written = MADE[recipe]
    files = [source / name for name in read]
    if absent := [str(file) for file in files if not file.exists()]:
        print(f"skipped: no file {', '.join(absent)}; set WEFT_DATA to the folder that holds the data")
        sys.exit(77)
    subprocess.run([sys.executable, str(TOOLS / tool), *map(str, files), *(str(target / name) for name in written)],
                   check=True)
    return target


def recipe_data_absent(recipe, data, folder):
    """Of data that no tool makes: the first file or folder that the specification names is not there."""
    if recipe in MADE:
        return False
    if ":" not in data:
        return not pathlib.Path("/usr/share/datasets", data).exists()
    return not (folder / data.split(":", 1)[1].split("?")[0]).exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True, help="the program")
    parser.add_argument("recipe")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.weft).resolve())
    recipes = json.loads(weft(program, "recipes", "--json").stdout)
    description = next(entry["description"] for entry in recipes if entry["recipe"] == arguments.recipe)
    data = next(entry["data"] for entry in recipes if entry["recipe"] == arguments.recipe)
    name, value, slack = stated(description)
    with tempfile.TemporaryDirectory() as made:
        source = pathlib.Path(os.environ.get("WEFT_DATA", ".")).resolve()
        folder = make_data(arguments.recipe, source, pathlib.Path(made))
        found = weft(program, "data", data, "--json", directory=folder)
        if found.returncode != 0 and recipe_data_absent(arguments.recipe, data, folder):
            print(f"skipped: {found.stderr.strip()}; set WEFT_DATA to the folder that holds the data")
            sys.exit(77)
        if found.returncode != 0:
            sys.exit(found.stderr)
        run = str(pathlib.Path(made) / "run")
        trained = weft(program, "train", arguments.recipe, "--run", run, "--json", "--quiet", directory=folder)
        if trained.returncode != 0:
            sys.exit(trained.stderr)
        summary = json.loads(trained.stdout)
    print(f"{arguments.recipe}: {name} {summary[name]:.4f}, stated {value}, {summary['train_seconds']:.1f} s")
    reached = summary[name] >= value + slack if slack < 0 else summary[name] <= value + slack
    if not reached:
        sys.exit(f"that is more than {abs(slack)} off")


if __name__ == "__main__":
    main()
