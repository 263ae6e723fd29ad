#!/usr/bin/env python3
"""Do two builds of weft compute the same bits? For work that must not change any result.

Usage: compare_builds.py BEFORE AFTER [--data DIR] [--only NAME]    BEFORE and AFTER are two programs `weft`.

For each model of the zoo, in the forms of tools/peer_check.py, both programs train the same steps from the same weights
on the same batches (`weft check-steps`), in f32 and bf16, as one process and as two ranks. Losses, first gradients and
the last weights have to be the same bytes. For each recipe whose data are at hand (Fashion-MNIST of the Debian package;
others under --data, as cifar10/, photos/, adult.data, optdigits.tra, tinyshakespeare.txt, dates.tsv, digits/) both
train so many steps from the seed, and the checkpoints have to hold the same tensors. Prints a table; ends with 1 where
something differs.
"""

import argparse
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peer_check

PRECISIONS = ("f32", "bf16")
RANKS = (1, 2)
# Whole networks beside the small forms, where a model has no small one.
WHOLE = [case for case in peer_check.SLOW_CASES
         if case[0] in ("alexnet", "vgg16", "resnet34", "resnet101", "wide_resnet50_2")]
MORE = [("resnet50_128", (3, 64, 64), 10, 4, 0.0005, {})]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, help="folder with the data of recipes; default: Fashion-MNIST only")
    parser.add_argument("--only", help="models and recipes whose name has this in it")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2, help="of one process; default: %(default)s")
    arguments = parser.parse_args()
    arguments.before, arguments.after = arguments.before.resolve(), arguments.after.resolve()
    return arguments


def run(command, cwd, environment=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def on_ranks(ranks):
    if ranks == 1:
        return []
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def write_safetensors(path, tensors):
    names = {np.dtype("float32"): "F32", np.dtype("int32"): "I32"}
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())


def read_safetensors(path):
    """Bytes of each tensor by name: what a file says beside them, such as the time, does not count."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    return {name: (entry["dtype"], tuple(entry["shape"]), body[slice(*entry["data_offsets"])])
            for name, entry in header.items() if name != "__metadata__"}


def graph_inputs(weft, case, cwd):
    """Kind, name, dtype and shape of each input of the inference graph and of the training graph's batch inputs."""
    model, shape, classes, batch, _, options = case
    command = [weft, "graph", model, "--input", ",".join(map(str, shape)), "--classes", classes, "--batch", batch]
    for key, value in options.items():
        command += ["--set", f"model.{key}={value}"]
    text = run(command, cwd)
    pattern = re.compile(r'^  (batch|parameter|state) %\S+ "([^"]+)" : (\w+)\[([\d,]*)\]', re.MULTILINE)
    return [(kind, name, dtype, tuple(int(size) for size in dims.split(",") if size))
            for kind, name, dtype, dims in pattern.findall(text)]


def write_inputs(weft, case, directory, steps):
    random = np.random.default_rng(7)
    weights, batches = {}, {}
    _, _, classes, _, _, _ = case
    for kind, name, dtype, shape in graph_inputs(weft, case, directory):
        if kind == "batch":
            for step in range(steps):
                if dtype == "f32":
                    value = random.standard_normal(shape).astype(np.float32)
                else:
                    value = random.integers(0, classes, shape).astype(np.int32)
                batches[f"step.{step}.{name}"] = value
        elif dtype == "f32" and not re.search(r"\.(momentum|exp_avg|slot)|/", name):
            if name.endswith("running_var"):
                weights[name] = np.ones(shape, np.float32)
            elif name.endswith(("running_mean", "bias")):
                weights[name] = np.zeros(shape, np.float32)
            elif len(shape) <= 1:
                weights[name] = np.ones(shape, np.float32)
            else:
                fan_in = int(np.prod(shape[1:]))
                weights[name] = (random.standard_normal(shape) / np.sqrt(max(1, fan_in))).astype(np.float32)
    write_safetensors(directory / "weights.safetensors", weights)
    write_safetensors(directory / "batches.safetensors", batches)


def check_steps(weft, case, precision, ranks, arguments, directory, out):
    model, shape, classes, _, rate, options = case
    command = on_ranks(ranks) + [weft, "check-steps", model, "--input", ",".join(map(str, shape)), "--classes", classes,
                                 "--weights", "weights.safetensors", "--batches", "batches.safetensors", "--steps",
                                 arguments.steps, "--learning-rate", rate, "--momentum", 0.9, "--weight-decay", 5e-4,
                                 "--threads", 1 if ranks > 1 else arguments.threads, "--set", f"precision={precision}",
                                 "--out", out]
    for key, value in options.items():
        command += ["--set", f"model.{key}={value}"]
    run(command, directory)
    return read_safetensors(directory / out)


def first_difference(before, after):
    if before.keys() != after.keys():
        return "other tensors: " + ", ".join(sorted(before.keys() ^ after.keys())[:3])
    for name in before:
        if before[name] != after[name]:
            return f"'{name}' differs"
    return ""


def compare_model(case, arguments):
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        write_inputs(arguments.before, case, directory, arguments.steps)
        for precision in PRECISIONS:
            for ranks in RANKS:
                if case[3] % ranks:
                    continue
                results = [check_steps(weft, case, precision, ranks, arguments, directory, f"{side}.safetensors")
                           for side, weft in (("before", arguments.before), ("after", arguments.after))]
                yield precision, ranks, len(results[0]), first_difference(*results)


def train_recipe(weft, name, precision, ranks, arguments, directory, run_name):
    show = run([weft, "recipes", name], directory)
    batch = int(re.search(r"^batch = (\d+)", show, re.MULTILINE)[1])
    command = on_ranks(ranks) + [weft, "train", name, "--run", run_name, "--precision", precision, "--quiet", "--threads",
                                 1 if ranks > 1 else arguments.threads]
    # A rise of the rate is longer than so few steps of some recipes.
    settings = {"schedule.warmup_epochs": 0, "evaluation.every_epochs": 0, "checkpoint.every_steps": arguments.steps, "checkpoint.every_epochs": 0}
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return command, batch


def compare_recipe(name, samples, arguments):
    """So many steps: a part of the first epoch, which ends the run."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        if arguments.data:
            for path in arguments.data.iterdir():
                (directory / path.name).symlink_to(path.resolve())
        for precision in PRECISIONS:
            for ranks in RANKS:
                states = []
                for side, weft in (("before", arguments.before), ("after", arguments.after)):
                    run_name = f"{side}-{precision}-{ranks}"
                    command, batch = train_recipe(weft, name, precision, ranks, arguments, directory, run_name)
                    epochs = arguments.steps * batch / samples
                    run(command + ["--set", f"epochs={epochs:.6f}"], directory)
                    checkpoint = sorted((directory / run_name / "checkpoints").glob("step-*"))[-1]
                    tensors = {}
                    for file in sorted(checkpoint.glob("*.safetensors")):
                        tensors.update(read_safetensors(file))
                    states.append(tensors)
                yield precision, ranks, len(states[0]), first_difference(*states)


# Recipe: file that must be there under --data (None: Debian's package), samples for training.
RECIPES = {
    "adult": ("adult.data", 32561), "cifar10_speedrun": ("cifar10", 50000), "dates": ("dates.tsv", 8000),
    "demo": (None, 60000), "digit_lines": ("digits", 6000), "fashion_lenet5": (None, 60000),
    "fashion_lstm": (None, 60000), "optdigits": ("optdigits.tra", 3823), "photos": ("photos", 3140),
    "tinyshakespeare": ("tinyshakespeare.txt", 15680),
}


def main():
    arguments = parse_arguments()
    cases = peer_check.CASES + WHOLE + MORE
    failed = compared = 0
    print(f"{'what':<42} {'precision':<10} {'ranks':<6} {'tensors':<8} same bits")

    def report(what, rows):
        nonlocal failed, compared
        try:
            for precision, ranks, tensors, difference in rows:
                compared += 1
                failed += bool(difference)
                print(f"{what:<42} {precision:<10} {ranks:<6} {tensors:<8} {difference or 'yes'}", flush=True)
        except RuntimeError as error:
            failed += 1
            print(f"{what:<42} failed: {error}", flush=True)

    for case in cases:
        if arguments.only and arguments.only not in case[0]:
            continue
        options = ",".join(f"{key}={value}" for key, value in case[5].items())
        report(f"{case[0]} {'x'.join(map(str, case[1]))} {options}"[:42], compare_model(case, arguments))
    for name, (file, samples) in RECIPES.items():
        if arguments.only and arguments.only not in name:
            continue
        if file is not None and (arguments.data is None or not (arguments.data / file).exists()):
            print(f"recipe {name}: skipped, '{file}' is not under --data")
            continue
        report(f"recipe {name}", compare_recipe(name, samples, arguments))
    print(f"{compared} compared, {failed} differ or failed")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
