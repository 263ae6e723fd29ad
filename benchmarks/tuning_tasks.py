"""Five searches over recipes that train in seconds: their data, what is searched, and how a table of trials is kept.

A table in benchmarks/tuning_tables/ has a row for each of many random trials of a task: the searched values (empty where a
key does not count), the best validation accuracy (of the language model, its loss) and the seconds that it trained. It is
made by `weft tune` itself:

  python3 benchmarks/tuning_tasks.py --shared DIR              # all tasks: hours
  python3 benchmarks/tuning_tasks.py --shared DIR --only optdigits --trials 100 --folder /tmp/tables

DIR holds tabular/adult.data, tabular/adult.test, tabular/optdigits.tra and .tes, text/tinyshakespeare.txt and cifar10/ (the
binary version). Fashion-MNIST is Debian's package dataset-fashion-mnist.
"""
import argparse
import csv
import gzip
import json
import math
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "benchmarks/tuning_tables"
FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")


# Dimensions as weft's spaces have them.
def real(name, low, high, log=False):
    return {"name": name, "kind": "real", "low": low, "high": high, "log": log}


def integer(name, low, high, log=False):
    return {"name": name, "kind": "integer", "low": low, "high": high, "log": log, "step": 1}


def choice(name, choices):
    return {"name": name, "kind": "choice", "choices": choices}


def when(dimension, name, values):
    return dict(dimension, **{"if": {"name": name, "values": values}})


def range_text(d):
    """A dimension as `weft tune --set-range` takes it."""
    if d["kind"] == "choice":
        text = "choice:" + ("|" if any("," in c for c in d["choices"]) else ",").join(d["choices"])
    else:
        kind = {("real", False): "float", ("real", True): "log", ("integer", False): "int", ("integer", True): "log-int"}
        text = f"{kind[d['kind'], d['log']]}:{d['low']!r}:{d['high']!r}"
    if "if" in d:
        text += f" if {d['if']['name']}={','.join(d['if']['values'])}"
    return f"{d['name']}={text}"


def range_words(space):
    return [word for d in space for word in ("--set-range", range_text(d))]


def read_study(weft, study):
    """As `weft tune show` prints it for programs."""
    shown = subprocess.run([weft, "tune", "show", str(study), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(shown.stdout)


def trains(least_batch, most_batch):
    """How any network trains, in seven keys."""
    return [
        choice("optimizer.name", ["sgd", "adamw"]),
        real("optimizer.learning_rate", 1e-4, 1.0, log=True),
        when(real("optimizer.momentum", 0.0, 0.99), "optimizer.name", ["sgd"]),
        real("optimizer.weight_decay", 1e-6, 0.1, log=True),
        integer("batch", least_batch, most_batch, log=True),
        choice("schedule.name", ["constant", "cosine", "polynomial", "one_cycle"]),
        real("loss.label_smoothing", 0.0, 0.3),
    ]


TASKS = {
    "optdigits": {
        "space": [*trains(16, 512), choice("model.hidden", ["32", "128", "32,32", "128,128", "64,64,64", "256,64"])],
        "set": ["model.name=mlp", "epochs=5"], "trials": 1500, "metric": "validation_accuracy",
    },
    "adult": {
        "space": [*trains(64, 1024), choice("model.hidden", ["16", "64", "16,16", "64,64", "32,32,32", "128,32"])],
        "set": ["model.name=mlp", "epochs=2"], "trials": 1500, "metric": "validation_accuracy",
    },
    "fashion_lenet5": {
        "space": [*trains(16, 512), choice("augment.flip", ["none", "random"])],
        "set": ["model.name=lenet5", "epochs=2"], "trials": 1500, "metric": "validation_accuracy",
    },
    "tinyshakespeare": {
        "space": [d for d in trains(8, 64) if d["name"] != "loss.label_smoothing"]
        + [real("model.dropout", 0.0, 0.3), integer("model.layers", 1, 3), choice("model.heads", ["1", "2", "4"])],
        "set": ["model.name=transformer_lm", "model.width=64", "epochs=1"], "trials": 300, "metric": "validation_loss",
    },
    "airbench94": {
        "space": trains(100, 1000), "set": ["model.name=airbench94", "model.width=16", "epochs=2"], "trials": 300,
        "metric": "validation_accuracy",
    },
}


def first_images(source, target, count):
    """So many samples of a pair of IDX files."""
    for kind, header, size in (("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)):
        with gzip.open(source / f"train-{kind}-ubyte.gz") as file:
            content = file.read(header + count * size)
        pathlib.Path(f"{target}-{kind}").write_bytes(content[:4] + count.to_bytes(4, "big") + content[8:])


def first_of_cifar10(source, target, count):
    """So many training images, at most 10,000 from each of the first files, in five files; and all test images."""
    content = b"".join((source / f"data_batch_{batch}.bin").read_bytes() for batch in range(1, 2 + (count - 1) // 10_000))
    share = count // 5 * 3073  # bytes: a label and 3 x 32 x 32 pixels each
    for batch in range(5):
        (target / f"data_batch_{batch + 1}.bin").write_bytes(content[batch * share:(batch + 1) * share])
    shutil.copy(source / "test_batch.bin", target)


def data_of(task, shared, folder):
    """Its data, where needed a part of it in a file of the folder, and the share that is for validation."""
    tabular = pathlib.Path(shared or ".").absolute() / "tabular"
    if task == "optdigits":
        return f"csv:{tabular}/optdigits.tra?test={tabular}/optdigits.tes&skip=1", 0.2
    if task == "adult":
        return f"csv:{tabular}/adult.data?test={tabular}/adult.test", 0.2
    if task == "fashion_lenet5":  # 10,000 images, and 2,000 to choose by
        first_images(FASHION_MNIST, folder / "some", 12_000)
        test = [f"{FASHION_MNIST}/t10k-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")]
        return f"idx:{folder}/some-images-idx3,{folder}/some-labels-idx1,{','.join(test)}", 1 / 6
    if task == "tinyshakespeare":
        text = (pathlib.Path(shared) / "text/tinyshakespeare.txt").read_text(encoding="utf-8")
        (folder / "part.txt").write_text(text[:200_000], encoding="utf-8")
        return f"text:{folder}/part.txt?length=64", 0.1
    first_of_cifar10(pathlib.Path(shared) / "cifar10", folder, 10_000)
    return f"cifar10:{folder}", 0.2


def recipe_words(task, shared, folder, epochs=None):
    """The words behind `weft tune` or `weft train` of what all trials have in common."""
    data, validation = data_of(task, shared, folder)
    lines = [f'data = "{data}"']
    words = [*TASKS[task]["set"], f"validation={validation:.6f}", "checkpoint.every_epochs=0"]
    if epochs is not None:
        words.append(f"epochs={epochs}")
    recipe = folder / "recipe.toml"
    recipe.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [str(recipe), *(word for one in words for word in ("--set", one))]


def loss_of(task, result):
    """What a search makes less: the share of errors, or the loss of the language model."""
    return 1 - result if TASKS[task]["metric"].endswith("accuracy") else result


def make_table(task, weft, shared, folder, table, trials, workers):
    folder.mkdir(parents=True, exist_ok=True)
    study = folder / "study"
    if study.exists():
        words = ["--resume", study]
    else:
        words = [*recipe_words(task, shared, folder), "--study", study, "--searcher", "random",
                 "--seed", list(TASKS).index(task) + 1,
                 *range_words(TASKS[task]["space"])]
    command = [weft, "tune", *map(str, words), "--trials", str(trials), "--workers", str(workers), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    names = [d["name"] for d in TASKS[task]["space"]]
    metric = TASKS[task]["metric"]
    table.parent.mkdir(parents=True, exist_ok=True)
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, metric, "seconds"])
        for trial in sorted(read_study(weft, study)["trials"], key=lambda one: one["trial"]):
            values, result = trial["values"], trial.get("results", {}).get(metric)
            # A trial whose loss became NaN has no result: it counts as the worst.
            shown_result = "" if result is None or not math.isfinite(result) else f"{result:.5g}"
            row = [values.get(name, "") for name in names]
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in row]
                            + [shown_result, f"{trial.get('seconds', 0):.3g}"])


def read_table(task, tables=TABLES):
    """Rows of (values by key, loss). Failed trials have the worst loss of all others."""
    space = {d["name"]: d for d in TASKS[task]["space"]}
    rows = []
    with open(tables / f"{task}.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = {name: text if space[name]["kind"] == "choice" else float(text)
                     for name, text in row.items() if name in space and text != ""}
            result = row[TASKS[task]["metric"]]
            rows.append((point, loss_of(task, float(result)) if result else math.inf))
    worst = max(loss for _, loss in rows if math.isfinite(loss))
    return [(point, min(loss, worst)) for point, loss in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weft", default=str(ROOT / "build/weft"))
    parser.add_argument("--shared", required=True, help="the folder of the data")
    parser.add_argument("--only", action="append", choices=TASKS, help="a task; repeatable")
    parser.add_argument("--trials", type=int, help="of each task; default: 1,500, or 300 where they take long")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", default="/tmp/weft_tuning_tables", help="for the studies, which go on where they ended")
    parser.add_argument("--tables", default=str(TABLES))
    arguments = parser.parse_args()
    for task in arguments.only or TASKS:
        folder = pathlib.Path(arguments.folder).absolute() / task
        table = pathlib.Path(arguments.tables) / f"{task}.csv"
        make_table(task, arguments.weft, arguments.shared, folder, table, arguments.trials or TASKS[task]["trials"],
                   arguments.workers)
        print(f"{table}: {sum(1 for _ in open(table, encoding='utf-8')) - 1} trials", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
