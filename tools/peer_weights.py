#!/usr/bin/python3
"""Checks that weights travel between weft and PyTorch: the same network gives the same logits on both sides.

There: PyTorch trains each network for a few steps, so that its running statistics are its own, and saves it as wrappers
do (names behind "module.", counters of batches); `weft eval --weights` has to give its logits to 1e-4 and its accuracy.
Back: weft trains one, `weft export` writes it, PyTorch loads it strictly and has to give the logits of `weft eval`.
Needs Debian's python3-torch. Prints a table; exits 1 where something differs.
"""

import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "peer"))

TOLERANCE = 1e-4
CLASSES, SIDE, SAMPLES = 4, 16, 70
MEAN, DEVIATION = 0.4, 0.3
CASES = [
    ("lenet5", {}),
    ("resnet9", {"width": 8}),
    ("resnet18", {"width": 8, "stem": "deep", "stem_reduction": "convolution", "shortcut": "average_pool", "downsample": "blur"}),
    ("densenet121", {"growth": 8, "blocks": "2,2"}),
    ("mobilenet_v2", {"width": "0.25"}),
    ("vit_tiny", {"layers": 2, "width": 48}),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build" / "weft"), help="the program; default: %(default)s")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


def write_idx(directory):
    """Noisy images whose bright quarter is their class, as IDX files; returns images in [0, 1] and labels."""
    import torch

    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(SAMPLES) % CLASSES
    images = torch.randint(0, 120, (SAMPLES, SIDE, SIDE), generator=generator)
    for image, label in zip(images, labels.tolist()):
        half = SIDE // 2
        image[half * (label // 2) :, half * (label % 2) :][:half, :half] += 100
    images = images.byte()
    header = struct.pack(">IIII", 0x803, SAMPLES, SIDE, SIDE)
    (directory / "images").write_bytes(header + images.numpy().tobytes())
    (directory / "labels").write_bytes(struct.pack(">II", 0x801, SAMPLES) + labels.byte().numpy().tobytes())
    return images.unsqueeze(1).float() / 255, labels


def weft(arguments, directory, *command):
    words = [arguments.weft, *map(str, command), "--threads", str(arguments.threads)]
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd=directory).stdout


def compare(what, logits, accuracy, peer_logits, labels):
    import numpy

    difference = float(numpy.abs(logits - peer_logits).max())
    peer_accuracy = float((peer_logits.argmax(1) == labels).mean())
    largest = float(numpy.abs(peer_logits).max())
    agrees = difference <= TOLERANCE * min(1, largest) and abs(accuracy - peer_accuracy) < 1e-6  # false for NaN
    print(f"{what:30} {largest:9.4f} {difference:9.1e} {accuracy:9.4f} {peer_accuracy:9.4f} {'agrees' if agrees else 'differs'}")
    return agrees


def logits_of(model, images):
    import torch

    with torch.no_grad():
        return model.eval()(images).numpy()


def check_there(arguments, directory, case, images, labels):
    import models
    import safetensors_numpy
    import torch

    name, options = case
    torch.manual_seed(3)
    images = (images - MEAN) / DEVIATION
    training = {key: 0 for key in ("dropout",) if name == "mobilenet_v2"}
    model = models.build(name, (1, SIDE, SIDE), CLASSES, **options, **training).train()
    optimizer = models.make_sgd(model, 0.01, 0.9, 5e-4)
    for _ in range(6):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    state = {f"module.{key}": value.numpy() for key, value in model.state_dict().items()}
    safetensors_numpy.write(directory / "weights.safetensors", state)
    command = ["eval", "--weights", "weights.safetensors", "--model", name, "--data", "idx:images,labels", "--batch", 32]
    command += ["--mean", MEAN, "--deviation", DEVIATION, "--logits", "logits.safetensors", "--json"]
    for key, value in options.items():
        command += ["--set", f"model.{key}={value}"]
    accuracy = json.loads(weft(arguments, directory, *command))["accuracy"]
    logits = safetensors_numpy.read(directory / "logits.safetensors")["logits"]
    return compare(f"PyTorch -> weft: {name}", logits, accuracy, logits_of(model, images), labels.numpy())


def check_back(arguments, directory, images, labels):
    import models
    import safetensors_numpy
    import torch

    train = ["train", "--model", "resnet9", "--set", "model.width=8", "--data", "idx:images,labels", "--batch", 32]
    weft(arguments, directory, *train, "--epochs", 3, "--run", "run", "--quiet")
    weft_export = [arguments.weft, "export", "run", "run.safetensors"]
    subprocess.run(weft_export, check=True, capture_output=True, cwd=directory)
    evaluate = ["eval", "run", "--data", "idx:images,labels", "--logits", "logits.safetensors", "--json"]
    accuracy = json.loads(weft(arguments, directory, *evaluate, "--mean", MEAN, "--deviation", DEVIATION))["accuracy"]
    state = safetensors_numpy.read(directory / "run.safetensors")
    model = models.build("resnet9", (1, SIDE, SIDE), CLASSES, width=8)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    logits = safetensors_numpy.read(directory / "logits.safetensors")["logits"]
    peer = logits_of(model, (images - MEAN) / DEVIATION)
    return compare("weft -> PyTorch: resnet9", logits, accuracy, peer, labels.numpy())


def main():
    arguments = parse_arguments()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    try:
        import torch
    except ImportError:
        print("peer_weights: PyTorch is missing; apt-get install python3-torch, and run with /usr/bin/python3", file=sys.stderr)
        sys.exit(77)  # as test runners say "skipped"
    torch.set_num_threads(arguments.threads)
    print(f"{'':30} {'largest':>9} {'distance':>9} {'weft':>9} {'PyTorch':>9} (logits; accuracy)")
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        images, labels = write_idx(directory)
        try:
            results = [check_there(arguments, directory, case, images, labels) for case in CASES]
            results.append(check_back(arguments, directory, images, labels))
        except subprocess.CalledProcessError as error:
            sys.exit(f"peer_weights: {' '.join(error.cmd)} failed:\n{error.stderr}")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
