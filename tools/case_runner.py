"""Runs a program that reads cases, one per line, and answers each with a line of JSON; starts it again behind a crash."""
import json
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple, Sequence


class Result(NamedTuple):
    status: str  # "passed", "wrong", "refused" or "crashed"
    message: str
    op: str = ""  # at which it was refused


class Answers:
    """Lines of a process's output as they come."""

    def __init__(self, process: subprocess.Popen):
        self.file, self.rest = process.stdout, b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.file, selectors.EVENT_READ)

    def next(self, seconds: float) -> bytes | None:
        """None where the time is over, empty where the output is."""
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if not self.selector.select(max(0.0, end - time.monotonic())):
                return None
            more = self.file.read1(1 << 16)
            if not more:
                return b""
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def ending(process: subprocess.Popen, errors) -> str:
    code = process.wait()
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    how = signal.Signals(-code).name if code < 0 else f"ended with {code}"
    return f"{how}: {lines[-1]}" if lines else how


def run_until_crash(command: Sequence[str], lines: Sequence[str], seconds: float, results: list[Result],
                    shows: bool) -> None:
    """Appends the results of these lines, up to and with the first crash."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as errors:
        asked.write("".join(f"{line}\n" for line in lines).encode())
        asked.seek(0)
        process = subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, stderr=errors)
        try:
            answers = Answers(process)
            for _ in lines:
                line = answers.next(seconds)
                if line is None:
                    process.kill()
                    results.append(Result("crashed", f"no answer within {seconds:g} s"))
                    return
                if not line:
                    results.append(Result("crashed", ending(process, errors)))
                    return
                answer = json.loads(line)
                results.append(Result(answer["status"], answer.get("message", ""), answer.get("op", "")))
                if shows and len(results) % 100 == 0:
                    print(f"\r{len(results)} tests", end="", file=sys.stderr, flush=True)
        finally:
            process.kill()  # a program that answered all may end by itself, too
            process.wait()
            process.stdout.close()


def run_cases(command: Sequence[str], lines: Sequence[str], seconds: float = 60, shows: bool = False) -> list[Result]:
    """One result per line."""
    results: list[Result] = []
    while len(results) < len(lines):
        run_until_crash(command, lines[len(results):], seconds, results, shows)
    if shows:
        print("\r", end="", file=sys.stderr, flush=True)
    return results
