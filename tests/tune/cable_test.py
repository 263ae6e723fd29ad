#!/usr/bin/env python3
"""A cable is cut: a worker in a network namespace of its own loses its link while it trains. The tuner finds that within
the time of --lost-after, another worker gets the trial, and no trial is lost. The worker ends with a message.

Usage: cable_test.py WEFT    Exits 77 where no network namespaces can be made: it wants root and `ip`.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from campaign import write_recipe

NAME = f"weft{os.getpid()}"
HERE, THERE = "10.231.7.1", "10.231.7.2"
LOST_AFTER = 3


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def make_network():
    if shutil.which("ip") is None or os.geteuid() != 0 or ip("netns", "add", NAME).returncode != 0:
        print("skipped: network namespaces want root and `ip`")
        sys.exit(77)
    for words in (["link", "add", NAME, "type", "veth", "peer", "name", "eth0", "netns", NAME],
                  ["addr", "add", f"{HERE}/24", "dev", NAME], ["link", "set", NAME, "up"],
                  ["-n", NAME, "addr", "add", f"{THERE}/24", "dev", "eth0"], ["-n", NAME, "link", "set", "eth0", "up"]):
        result = ip(*words)
        if result.returncode != 0:
            sys.exit(f"ip {' '.join(words)}: {result.stderr}")


def wait_for(what, condition, seconds=60):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            sys.exit(f"waited {seconds} s for {what}")
        time.sleep(0.01)
    return time.monotonic() - begin


def main():
    program = os.path.abspath(sys.argv[1])
    make_network()
    processes = []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_recipe(folder)

            def start(log, *words, before=()):
                process = subprocess.Popen([*before, program, "tune", *words], cwd=folder, stdout=subprocess.DEVNULL,
                                           stderr=open(folder / log, "w"))
                processes.append(process)
                return process

            tuner = start("tuner.log", "recipe.toml", "--study", "study", "--set-range",
                          "optimizer.learning_rate=log:1e-3:1", "--trials", "3", "--set", "epochs=500", "--workers", "0",
                          "--serve", f"{HERE}:0", "--lost-after", f"{LOST_AFTER}s")
            said = folder / "tuner.log"
            wait_for("the tuner", lambda: "tune worker" in said.read_text())
            address = said.read_text().split("tune worker ")[1].split()[0]
            work = ["worker", address, "--token-file", "study/token", "--trials", "1", "--lost-after", f"{LOST_AFTER}s"]
            first = start("first.log", *work, "--folder", "first", before=["ip", "netns", "exec", NAME])
            wait_for("the first epochs", lambda: (folder / "study/runs/0000/metrics.jsonl").exists())
            second = start("second.log", *work, "--folder", "second")
            ip("link", "set", NAME, "down")
            found = wait_for("the loss to be found", lambda: "is lost" in said.read_text(), 4 * LOST_AFTER)
            ended = wait_for("the worker to end", lambda: first.poll() is not None, 6 * LOST_AFTER)
            if first.returncode != 1 or "is gone" not in (folder / "first.log").read_text():
                sys.exit(f"the worker ended with {first.returncode}: {(folder / 'first.log').read_text()}")
            if tuner.wait(300) != 0:
                sys.exit(said.read_text())
            second.wait(30)
            shown = subprocess.run([program, "tune", "show", "study", "--json"], cwd=folder, capture_output=True, text=True)
            states = [trial["state"] for trial in json.loads(shown.stdout)["trials"]]
            if states != ["finished"] * 3:
                sys.exit(f"trials are {states}")
            print(f"the loss was found after {found:.1f} s, and the worker ended {ended:.1f} s later; all trials finished")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        ip("netns", "delete", NAME)
        ip("link", "delete", NAME)


if __name__ == "__main__":
    main()
