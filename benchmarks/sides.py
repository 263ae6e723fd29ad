"""What the comparisons with PyTorch share: the cases, and a training step's speed on either side in a process of its own."""
import json
import os
import pathlib
import subprocess
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # which has Debian's PyTorch

# Input per sample and batch; sizes that two cores train in a second or two per step.
PHOTO, SMALL = "3,128,128", "3,32,32"
SIZES = {
    "mlp": ("1,28,28", 128),
    "lenet5": ("1,28,28", 64),
    "resnet9": ("1,28,28", 256),
    "wide_resnet": (SMALL, 32),
    "airbench94": (SMALL, 256),
    "vgg16": (PHOTO, 8),
    "lstm_classifier": ("1,28,28", 128),
    "seq2seq_attention": ("64", 32),
    "crnn": ("1,32,128", 16),
    "transformer_lm": ("128", 8),
}


def size_of(model):
    """Input and batch."""
    return SIZES.get(model, (PHOTO, 16))


def human(count):
    """Three digits and a unit: 1.34 G."""
    for unit in ("", " k", " M", " G"):
        if count < 1000 or unit == " G":
            return f"{count:.3g}{unit}"
        count /= 1000


class Case(NamedTuple):
    model: str
    shape: str
    batch: int
    classes: int

    def options(self, threads):
        return [self.model, "--input", self.shape, "--batch", str(self.batch), "--classes", str(self.classes),
                "--threads", str(threads)]


class SideFailed(Exception):
    """A program that was to be measured did not end as it should."""


def run_json(command, threads=None):
    """What the command prints, read as JSON."""
    command = [str(word) for word in command]
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    environment = dict(os.environ, **({name: str(threads) for name in variables} if threads else {}))
    try:
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
    except OSError as error:
        raise SideFailed(f"{command[0]}: {error.strerror}; `make build` makes weft") from None
    if result.returncode != 0:
        raise SideFailed(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr.strip()}")
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        raise SideFailed(f"{' '.join(command)} printed no JSON:\n{result.stdout[-500:]}") from None


def run_ranks_json(commands, threads):
    """What the first of programs that work together prints, read as JSON; the others end with it."""
    variables = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    others = [subprocess.Popen([str(word) for word in command], env=dict(os.environ, **variables),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands[1:]]
    try:
        result = run_json(commands[0], threads)
        for other in others:
            other.wait(120)
    finally:
        for other in others:
            other.kill()
    return result


def weft_step(case, arguments, precision="f32", extra=()):
    """What `weft bench` says of a training step."""
    return run_json([arguments.weft, "bench", *case.options(arguments.threads), "--precision", precision,
                     "--seconds", str(arguments.seconds), "--json", *extra], arguments.threads)


def pytorch_step(case, arguments, precision="f32", channels_last=False, extra=()):
    """The same of PyTorch: so many steps, and more until arguments.peer_seconds are over, where that is set."""
    flags = [*(["--bf16"] if precision == "bf16" else []), *(["--channels-last"] if channels_last else [])]
    return run_json([PYTHON, ROOT / "benchmarks/peer/train_speed.py", *case.options(arguments.threads),
                     "--steps", str(arguments.peer_steps), "--seconds", str(getattr(arguments, "peer_seconds", 0)),
                     *flags, *extra], arguments.threads)


def memory_formats(case):
    """Of PyTorch, by name: whether in channels-last. Token sequences have no channels."""
    return {"channels-last": True, "contiguous": False} if "," in case.shape else {"contiguous": False}


def run_round(case, arguments):
    """Samples per second of weft and of each memory format of PyTorch, one after the other."""
    speeds = {"weft": weft_step(case, arguments, arguments.precision)["samples_per_second"]}
    for name, channels_last in memory_formats(case).items():
        speeds[name] = pytorch_step(case, arguments, arguments.precision, channels_last)["images_per_second"]
    return speeds
