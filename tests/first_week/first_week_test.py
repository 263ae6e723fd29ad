#!/usr/bin/env python3
"""The commands of a new user's first week and what weft answers, in order: first_week.txt.

Usage: first_week_test.py BUILD    the folder that holds the program

A line "$ COMMAND" is given to bash, in a folder that make_data.py filled; the lines below it are what is printed, standard
output and standard error together, as doctest compares them: "..." stands for any text, blanks count as one. "[N]" at the
end is the exit code, 0 where there is none; "## " begins a heading. --show prints what each command says instead of comparing it.
"""
import difflib
import doctest
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def read_cases(path):
    """(line number, command, expected output, exit code) of each command."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            continue
        if line.startswith("$ "):
            cases.append((number, line[2:], []))
        elif cases:
            cases[-1][2].append(line)
    for number, command, lines in cases:
        while lines and not lines[-1]:
            lines.pop()
        code = re.fullmatch(r"\[(\d+)\]", lines[-1]) if lines else None
        expected = lines[:-1] if code else lines
        yield number, command, "\n".join(expected) + "\n", int(code[1]) if code else 0


def run(command, folder, build):
    environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}", "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
    return result.stdout, result.returncode


def main():
    show = "--show" in sys.argv
    build = pathlib.Path([word for word in sys.argv[1:] if not word.startswith("--")][0]).resolve()
    checker, failed, count = doctest.OutputChecker(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "make_data.py", folder], check=True)
        for number, command, expected, code in read_cases(HERE / "first_week.txt"):
            output, got = run(command, folder, build)
            count += 1
            if show:
                print(f"$ {command}\n{output.rstrip()}" + (f"\n[{got}]" if got else "") + "\n", flush=True)
                continue
            if checker.check_output(expected, output or "\n", FLAGS) and got == code:
                continue
            failed += 1
            difference = "\n".join(difflib.ndiff(expected.splitlines(), output.splitlines()))
            print(f"first_week.txt:{number}: $ {command}\nexit code {got}, expected {code}\n{difference}\n", flush=True)
    print(f"{count} commands, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
