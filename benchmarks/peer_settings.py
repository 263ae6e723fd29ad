"""PyTorch's best setting per row: which memory format, eager or compiled, and in which precision.

PyTorch is at its best in another setting for each network and processor, so that every setting is tried once, for some
seconds each. Compiling takes a minute for deep networks: the slower memory format is compiled only if compiling the faster one
comes near the best. Those within 10 % of the fastest are tried again, and the faster of its two figures counts. What won is kept
in a file (benchmarks/peer/best_settings.json) under PyTorch's version, the processor, the threads, the network, input and
batch: the next benchmark on such a machine measures only that.
"""
import json
import os
import pathlib
import platform
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "benchmarks/peer/best_settings.json"
NEAR_BEST = 0.9
# A compiled memory format below this share of the best says that the other one needs no trial: they differ by up to 10 %.
WORTH_COMPILING = 0.85


class Setting(NamedTuple):
    precision: str  # f32, or bf16 by autocast
    memory_format: str  # contiguous or channels-last
    mode: str  # eager or compiled

    def flags(self):
        """For benchmarks/peer/train_speed.py."""
        return [*(["--bf16"] if self.precision == "bf16" else []),
                *(["--channels-last"] if self.memory_format == "channels-last" else []),
                *(["--compile"] if self.mode == "compiled" else [])]

    def __str__(self):
        return f"{self.precision}, {self.memory_format}, {self.mode}"


def memory_formats(shape):
    """Token sequences have no channels."""
    return ["channels-last", "contiguous"] if "," in shape else ["contiguous"]


def settings(shape, precisions):
    return [Setting(precision, memory_format, mode) for precision in precisions for mode in ("eager", "compiled")
            for memory_format in memory_formats(shape)]


def processor():
    """Its name, family and model: names alone, such as 'AMD EPYC', stand for several."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = [re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE) for name in ("model name", "cpu family", "model")]
    if not all(fields):
        return platform.machine()
    return "{}, family {}, model {}".format(*(field[1].strip() for field in fields))


def is_hopeless(setting, speeds):
    """Whether the same network, compiled in the other memory format, fell far behind the best."""
    others = [speed for other, speed in speeds.items()
              if other.mode == setting.mode == "compiled" and other.precision == setting.precision]
    return bool(others) and max(others) < WORTH_COMPILING * max(speeds.values())


def try_all(candidates, speed_of):
    """Speed of each setting that works, by name, and why others do not. `speed_of` raises Exception where one fails."""
    speeds, failed = {}, {}

    def slowness_when_eager(setting):
        return -speeds.get(setting._replace(mode="eager"), 0)

    for mode in ("eager", "compiled"):
        for setting in sorted((each for each in candidates if each.mode == mode), key=slowness_when_eager):
            if is_hopeless(setting, speeds):
                continue
            try:
                speeds[setting] = speed_of(setting)
            except Exception as failure:  # a setting that does not work is no candidate, whatever the reason
                failed[str(setting)] = str(failure).strip().splitlines()[-1]
    near = [setting for setting, speed in speeds.items() if speed >= NEAR_BEST * max(speeds.values())]
    if len(near) > 1:
        for setting in near:
            speeds[setting] = max(speeds[setting], speed_of(setting))
    return speeds, failed


class BestSettings:
    """The file of what won. One entry per row; written anew after each new one."""

    def __init__(self, framework, threads, path=KEPT):
        self.path, self.machine = path, {"framework": framework, "processor": processor(), "threads": threads}

    def entries(self):
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def best(self, case, precisions, speed_of):
        """Setting and the entry of the file; found by trials where the file does not have it. None where none works."""
        row = {**self.machine, "model": case.model, "input": case.shape, "batch": case.batch, "classes": case.classes,
               "precisions": sorted(precisions)}
        for entry in self.entries():
            if all(entry[key] == value for key, value in row.items()):
                return Setting(*entry["best"]), entry
        speeds, failed = try_all(settings(case.shape, precisions), speed_of)
        if not speeds:
            return None, {"failed": failed}
        best = max(speeds, key=speeds.get)
        entry = {**row, "best": list(best), "images_per_second": {str(s): round(v, 2) for s, v in speeds.items()},
                 "failed": failed}
        self.write([*self.entries(), entry])
        return best, entry

    def write(self, entries):
        temporary = self.path.with_suffix(".part")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)
