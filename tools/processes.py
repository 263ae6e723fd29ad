"""What tests with real trainings share: a small data set, and the processes of a run as /proc shows them."""
import os
import random
import struct
import typing

DATA = "idx:train-images,train-labels,test-images,test-labels"


def write_data(folder, training, test):
    """So many samples of four classes, 8x8 images, each class a bright quarter: the files that DATA names."""
    draw = random.Random(1)
    for split, count in (("train", training), ("test", test)):
        labels = bytes(sample % 4 for sample in range(count))
        images = bytearray()
        for label in labels:
            for row in range(8):
                for column in range(8):
                    bright = (row >= 4) == (label >= 2) and (column >= 4) == (label % 2 == 1)
                    images.append((150 if bright else 0) + draw.randrange(100))
        with open(f"{folder}/{split}-images", "wb") as file:
            file.write(struct.pack(">IIII", 0x803, count, 8, 8) + images)
        with open(f"{folder}/{split}-labels", "wb") as file:
            file.write(struct.pack(">II", 0x801, count) + labels)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


class Running(typing.NamedTuple):
    process: int
    name: str  # as the kernel has it
    words: list  # of its command
    environment: bytes

    def variable(self, name):
        """Of its environment, or None."""
        for variable in self.environment.split(b"\0"):
            if variable.startswith(name.encode() + b"="):
                return variable[len(name) + 1:].decode(errors="replace")
        return None

    def folder(self):
        """In which it runs; empty where it has ended."""
        try:
            return os.readlink(f"/proc/{self.process}/cwd")
        except OSError:
            return ""


def all_running():
    """The processes of this machine whose environment may be read."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            words = read_bytes(f"/proc/{entry}/cmdline").decode(errors="replace").split("\0")[:-1]
            name = read_bytes(f"/proc/{entry}/comm").decode(errors="replace").strip()
            environment = read_bytes(f"/proc/{entry}/environ")
        except OSError:
            continue
        yield Running(int(entry), name, words, environment)


def send(process, number):
    """A signal; nothing where the process has ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def is_stopped(process):
    """Whether a signal has stopped it: a process that is ending takes none."""
    try:
        return read_bytes(f"/proc/{process}/stat").rpartition(b") ")[2][:1] == b"T"
    except OSError:
        return False
