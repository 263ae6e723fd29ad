#!/usr/bin/env python3
"""Which residual network for photos of 128x128? Its variants, trained alike, as a Markdown table.

Trains recipes/photos.toml on pictures in a folder per class with every variant of a residual network, for the same number
of epochs and with the same seeds, and shows test accuracy beside that of the plain network, with parameters, multiply-adds
and speed: what a variant gains has to be worth what it costs. The seed decides weights, order and augmentation, so the
differences of the pairs of one seed are shown too.

  python3 benchmarks/low_resolution.py images:DIR --out build/low_resolution                    # resnet50: hours
  python3 benchmarks/low_resolution.py images:DIR --out build/quick --model resnet18 --width 32 --epochs 8 --seeds 2
  python3 benchmarks/low_resolution.py images:DIR --out build/low_resolution --only plain,resnet_d --minutes 60
  python3 benchmarks/low_resolution.py images:DIR --out build/low_resolution --variant wide:width=96,stem=deep
  python3 benchmarks/low_resolution.py images:DIR --out build/low_resolution --print            # what is there already

Every run is a run directory under --out. What was interrupted goes on where it was, what is finished is not done again:
call it again with more seeds or variants. With --size-of-reference 224 the plain network is trained on larger images, too:
what the variants at 128x128 have to make good. The same numbers are in --out/study.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from sides import human
from studies import ROOT, describe, difference_of, finish_run, markdown, percent, summary_of

RECIPE = ROOT / "recipes" / "photos.toml"
RESNET_D = {"stem": "deep", "shortcut": "average_pool"}
# Options of the model by the name of the variant; the first is what the others are compared with.
VARIANTS = {
    "plain": {},
    "zero_init": {"zero_init_residual": "yes"},
    "deep_stem": {"stem": "deep"},
    "average_pool": {"shortcut": "average_pool"},
    "blur": {"downsample": "blur"},
    "resnet_d": RESNET_D,
    "resnet_d_blur": {**RESNET_D, "downsample": "blur"},
    "last_stride": {"last_stride": 1},
    "resnet_d_last_stride": {**RESNET_D, "last_stride": 1},
    "no_pooling": {"stem_reduction": "convolution"},  # maps of twice the sides, four times the work
    "resnet_d_no_pooling": {**RESNET_D, "stem_reduction": "convolution"},
}


def fail(message):
    sys.exit(f"low_resolution: {message}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="images:DIR, with options as in `weft data --help` but for size")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the run directories")
    parser.add_argument("--model", default="resnet50", help="of the residual networks; default: resnet50")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layer; default: 64")
    parser.add_argument("--size", type=int, default=128, help="of the images; default: 128")
    parser.add_argument("--size-of-reference", type=int, metavar="SIZE", help="train the plain network on these, too")
    parser.add_argument("--epochs", type=float, default=20.0)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--set", action="append", default=[], help="any key of the recipe, for all runs")
    parser.add_argument("--only", help=f"variants, separated by commas; of {', '.join(VARIANTS)}")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME:KEY=VALUE,...", help="one more; repeatable")
    parser.add_argument("--minutes", type=float, help="begin no training after so many")
    parser.add_argument("--print", action="store_true", help="train nothing, show what is there")
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    return parser.parse_args()


def chosen_variants(arguments):
    variants = dict(VARIANTS)
    if arguments.only:
        names = arguments.only.split(",")
        if unknown := [name for name in names if name not in VARIANTS]:
            fail(f"--only: '{unknown[0]}' is none of {', '.join(VARIANTS)}")
        variants = {name: options for name, options in VARIANTS.items() if name in names or name == "plain"}
    for text in arguments.variant:
        name, _, settings = text.partition(":")
        pairs = [setting.partition("=")[::2] for setting in settings.split(",")]
        if not name.isidentifier() or not all(key and value for key, value in pairs):
            fail(f"--variant '{text}': wants NAME:KEY=VALUE,KEY=VALUE")
        variants[name] = dict(pairs)
    return variants


def keep_settings(arguments):
    """Runs of one folder are comparable: what they have in common stands in a file beside them."""
    common = ("data", "model", "width", "size", "epochs", "batch", "precision", "set")
    settings = {name: getattr(arguments, name) for name in common}
    path = arguments.out / "settings.json"
    if not any(arguments.out.glob("*-seed*")):
        arguments.out.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=1) + "\n")
        return
    kept = json.loads(path.read_text())
    if differing := [name for name in common if kept.get(name) != settings[name]]:
        name = differing[0]
        fail(f"'{arguments.out}' holds runs with {name} {kept.get(name)}, not {settings[name]}; give another --out")


def model_settings(arguments, options):
    return {"width": arguments.width, **options}


def command_of(arguments, options, size, seed):
    data = f"{arguments.data}{'&' if '?' in arguments.data else '?'}size={size}"
    command = [arguments.weft, "train", RECIPE, "--data", data, "--model", arguments.model, "--epochs", str(arguments.epochs),
               "--batch", str(arguments.batch), "--seed", str(seed), "--precision", arguments.precision]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    settings = [f"model.{key}={value}" for key, value in model_settings(arguments, options).items()]
    for setting in [*settings, *arguments.set]:
        command += ["--set", setting]
    return command


def cost_of(arguments, options, size, run):
    """Parameters and multiply-adds of the network as it was trained."""
    classes = json.loads((run / "data.json").read_text())["classes"]
    command = [arguments.weft, "models", arguments.model, "--input", f"3,{size},{size}", "--classes", str(classes), "--json"]
    for key, value in model_settings(arguments, options).items():
        command += ["--set", f"model.{key}={value}"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
    return {"parameters": listed["parameters"], "multiply_adds": listed["multiply_adds"]}


def train_all(arguments, trainings):
    """{name: {seed: summary}} of all that is finished, seed by seed: what there is can be compared at any time."""
    results = {name: {} for name in trainings}
    begin = time.monotonic()
    for seed in range(1, arguments.seeds + 1):
        for name, (options, size) in trainings.items():
            run = arguments.out / f"{name}-seed{seed}"
            summary = summary_of(run)
            late = arguments.minutes is not None and time.monotonic() - begin > 60 * arguments.minutes
            if summary is None and not arguments.print and not late:
                summary = finish_run(arguments.weft, run, command_of(arguments, options, size, seed))
                print(f"{name}, seed {seed}: {100 * summary['test_accuracy']:.2f} %, {summary['train_seconds']:.0f} s", flush=True)
            if summary is not None:
                results[name][seed] = summary
    return results


def report_of(arguments, trainings, results):
    accuracies = {name: {seed: run["test_accuracy"] for seed, run in runs.items()} for name, runs in results.items()}
    report = {}
    for name, runs in results.items():
        if not runs:
            continue
        options, size = trainings[name]
        row = {"options": options, "size": size, **describe(list(accuracies[name].values()))}
        row.update(cost_of(arguments, options, size, arguments.out / f"{name}-seed{min(runs)}"))
        for key, value in (("images_per_second", "images_per_second"), ("seconds", "train_seconds")):
            row[key] = statistics.median(run[value] for run in runs.values())
        row["train_loss"] = statistics.mean(run["train_loss"] for run in runs.values())
        if name != "plain" and accuracies["plain"]:
            row.update(difference_of(accuracies[name], accuracies["plain"]))
        report[name] = row
    return report


def to_markdown(arguments, report):
    rows = []
    for name, row in report.items():
        cells = ["", ""]
        if "difference" in row:
            bound = "" if row["bound"] is None else f" (two standard errors {100 * row['bound']:.2f})"
            cells = [f"{100 * row['difference']:+.2f}{bound}", percent(row["paired"], "+") if row["paired"] else ""]
        options = ", ".join(f"{key}={value}" for key, value in row["options"].items()) or "none"
        rows.append([name, options, str(row["size"]), str(row["runs"]), percent(row) + " %", *cells,
                     human(row["parameters"]), human(row["multiply_adds"]), f"{row['images_per_second']:.0f}", f"{row['seconds']:.0f}"])
    title = f"{arguments.model}, width {arguments.width}, {arguments.epochs:g} epochs"
    return markdown([title, "options", "size", "runs", "test accuracy", "difference from plain", "of pairs", "parameters",
                     "multiply-adds", "images/s", "s/run"], rows)


def main():
    arguments = parse_arguments()
    kind, _, rest = arguments.data.partition(":")
    if kind != "images" or not rest:
        fail(f"'{arguments.data}' is no folder of pictures; give images:DIR")
    folder, mark, options = rest.partition("?")
    arguments.data = f"images:{os.path.abspath(folder)}{mark}{options}"
    trainings = {name: (options, arguments.size) for name, options in chosen_variants(arguments).items()}
    if arguments.size_of_reference:
        trainings[f"plain_{arguments.size_of_reference}"] = (VARIANTS["plain"], arguments.size_of_reference)
    keep_settings(arguments)
    report = report_of(arguments, trainings, train_all(arguments, trainings))
    if not report:
        fail(f"there are no finished runs in '{arguments.out}'")
    (arguments.out / "study.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{to_markdown(arguments, report)}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))} ended with exit code {error.returncode}; call this again to go on")
