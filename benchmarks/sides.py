"""What the comparisons with PyTorch share: the cases, and a training step's speed on either side in a process of its own."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
from typing import NamedTuple

from peer_python import NoPeer, peer_python
from peer_settings import BestSettings, Setting, memory_formats, processor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAIN_SPEED = ROOT / "benchmarks/peer/train_speed.py"
# Without huge pages, either side spends 10 to 20 % more time on the pages of its activations.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
# In containers one is root, which mpirun wants to be told twice.
MPIRUN_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Input per sample and batch; sizes that two cores train in a second or two per step.
PHOTO, SMALL = "3,128,128", "3,32,32"
SIZES = {
    "mlp": ("1,28,28", 128),
    "lenet5": ("1,28,28", 64),
    "resnet9": ("1,28,28", 256),
    "resnet20": (SMALL, 128),
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


PIPELINE_SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_v")


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


def environment(threads=None):
    """Of either side: equal threads where they are given, and huge pages."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if threads else ()
    return {**os.environ, **HUGE_PAGES, **MPIRUN_AS_ROOT, **{name: str(threads) for name in names}}


def processor_has(*instructions):
    """Whether one of these words is among the processor's flags."""
    flags = re.findall(r"^(?:flags|Features)\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return any(word in line.split() for line in flags[:1] for word in instructions)


def weight_bits():
    """Of quantized weights: without VNNI, processors multiply bytes exactly and fast where weights have 7 bits."""
    return 8 if processor_has("avx512_vnni", "avx_vnni") else 7


def has_bf16():
    return processor_has("avx512_bf16", "amx_bf16")


def precisions_of_processor(*precisions):
    """Those of f32, bf16 and int8 that weft computes in here."""
    if "bf16" in precisions and not has_bf16():
        print("bf16 is left away: this processor has no instructions for it\n")
    return [precision for precision in precisions if precision != "bf16" or has_bf16()]


def run_json(command, threads=None):
    """What the command prints, read as JSON."""
    command = [str(word) for word in command]
    try:
        result = subprocess.run(command, capture_output=True, text=True, env=environment(threads))
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
    others = [subprocess.Popen([str(word) for word in command], env=environment(threads),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands[1:]]
    try:
        result = run_json(commands[0], threads)
        for other in others:
            other.wait(120)
    finally:
        for other in others:
            other.kill()
    return result


def measure_ops(model, shape, batches, precisions, arguments, settings=(), ranks=1):
    """Lets weft measure the ops of a model's steps (`weft rates --ops`), from which it predicts; of a recipe with these
    settings, while so many ranks compute at once."""
    command = [arguments.weft, "rates", "--ops", model, "--input", shape, "--batch", ",".join(map(str, batches)),
               "--precision", ",".join(precisions), "--threads", arguments.threads, "--seconds", arguments.rate_seconds,
               "--ranks", ranks, *(word for setting in settings for word in ("--set", setting))]
    if subprocess.run([str(word) for word in command], stdout=sys.stderr).returncode != 0:
        print(f"{model}: ops could not be measured", file=sys.stderr)


def turned(names, round_):
    """The names, of which another one comes first each round: the pace of a machine changes within a round."""
    return names[round_ % len(names):] + names[:round_ % len(names)]


def python_of_peer():
    """The Python with PyTorch; SideFailed where it cannot be had."""
    try:
        return peer_python()
    except NoPeer as failure:
        raise SideFailed(str(failure)) from None


def version_of_peer():
    """Such as `pytorch 2.13.0+cpu`."""
    return run_json([python_of_peer(), "-c", "import json, torch; print(json.dumps('pytorch ' + torch.__version__))"])


def weft_step(case, arguments, precision="f32", extra=()):
    """What `weft bench` says of a training step."""
    return run_json([arguments.weft, "bench", *case.options(arguments.threads), "--precision", precision,
                     "--seconds", str(arguments.seconds), "--json", *extra], arguments.threads)


def pytorch_step(case, arguments, setting, extra=()):
    """The same of PyTorch, for as many seconds."""
    return run_json([python_of_peer(), TRAIN_SPEED, *case.options(arguments.threads), "--seconds", str(arguments.seconds),
                     *setting.flags(), *extra], arguments.threads)


def best_of_peer(case, precisions, arguments):
    """PyTorch's best setting for a row, and what the trials gave; the trials are run where nobody has run them."""
    def speed_of(setting):
        return pytorch_step(case, arguments, setting)["images_per_second"]

    best, entry = BestSettings(version_of_peer(), arguments.threads).best(case, precisions, speed_of)
    if best is None:
        raise SideFailed("PyTorch: no setting works:\n" + "\n".join(f"  {k}: {why}" for k, why in entry["failed"].items()))
    return best, entry


def faster_format_of_peer(case, precision, arguments):
    """For ranks, which run eagerly: the setting with the faster memory format of one process, by a short trial of each."""
    candidates = [Setting(precision, memory_format, "eager") for memory_format in memory_formats(case.shape)]
    return max(candidates, key=lambda setting: pytorch_step(case, arguments, setting)["images_per_second"])


def spread(values):
    """The median of ratios, with the lowest and the highest, for a table."""
    return f"**{statistics.median(values):.2f}** ({min(values):.2f}-{max(values):.2f})"


def in_turn(rounds, sides):
    """What each side's function returns, per round; who begins alternates."""
    results = []
    for index in range(rounds):
        names = list(sides) if index % 2 == 0 else list(reversed(sides))
        done = {name: sides[name]() for name in names}
        results.append({name: done[name] for name in sides})
    return results


def compare_speed(case, weft_precisions, peer_precisions, arguments):
    """Samples per second of weft, in its best of these precisions, and of PyTorch at its best, round by round."""
    best, entry = best_of_peer(case, peer_precisions, arguments)
    sides, lacking = {}, dict(entry["failed"])
    for precision in weft_precisions:
        sides[f"weft {precision}"] = lambda precision=precision: weft_step(case, arguments, precision)["samples_per_second"]
    sides["PyTorch"] = lambda: pytorch_step(case, arguments, best)["images_per_second"]
    rounds = in_turn(arguments.rounds, sides)
    ours = [max((speed, name) for name, speed in each.items() if name != "PyTorch") for each in rounds]
    ratios = [mine[0] / each["PyTorch"] for mine, each in zip(ours, rounds)]
    return {"weft": statistics.median(speed for speed, _ in ours),
            "pytorch": statistics.median(each["PyTorch"] for each in rounds), "ratios": ratios,
            "value": statistics.median(ratios), "rounds": rounds,
            "settings": {"weft": statistics.mode(name for _, name in ours).removeprefix("weft "), "PyTorch": str(best)},
            "trials": entry["images_per_second"], "lacking": lacking}


def describe_machine(arguments):
    """What a table has to say of where it was measured."""
    plan = run_json([arguments.weft, "bench", "mlp", "--plan-only", "--json", "--threads", str(arguments.threads)])
    return {"cpu": processor(), "isa": plan["isa"], "onednn": plan["onednn"], "threads": arguments.threads,
            "pytorch": version_of_peer().removeprefix("pytorch "), "load": os.getloadavg()[0]}
