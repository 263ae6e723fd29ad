#!/usr/bin/env python3
"""Studies of many trainings: what they make of results, what they train anew, and what they refuse. The program is a
stand-in that writes the summary of a run at once."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import low_resolution  # noqa: E402
import studies  # noqa: E402

# Accuracy by variant and seed; every call of `train` is a line of the file `calls`. A run that it is told to break off
# leaves its directory without a summary.
STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
if words[0] == "models":
    print(json.dumps([{"parameters": 1500000, "multiply_adds": 42000000}]))
    sys.exit(0)
flag = "--resume" if "--resume" in words else "--run"
run = pathlib.Path(words[words.index(flag) + 1])
with open(run.parent / "calls", "a") as calls:
    calls.write(" ".join([flag, run.name, *(word for word in words if word.startswith("model."))]) + "\\n")
run.mkdir(exist_ok=True)
if os.environ.get("BREAK_OFF") == run.name:
    sys.exit(1)
seed = int(run.name[-1])
accuracy = {"plain": 0.50, "blur": 0.53, "wide": 0.40}[run.name.split("-")[0]] + 0.01 * seed
(run / "data.json").write_text(json.dumps({"classes": 10}))
(run / "summary.json").write_text(json.dumps({"test_accuracy": accuracy, "train_loss": 1, "train_seconds": 2 + seed,
                                              "images_per_second": 100}))
"""


class Studies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.weft = self.folder / "weft"
        self.weft.write_text(STAND_IN)
        self.weft.chmod(0o755)

    def study(self, *words):
        """What it prints."""
        command = ["low_resolution.py", "images:photos", "--out", str(self.out), "--weft", str(self.weft), *words]
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(printed):
            low_resolution.main()
        return printed.getvalue()

    def refusal(self, *words):
        with self.assertRaises(SystemExit) as stopped:
            self.study(*words)
        return str(stopped.exception)

    def calls(self):
        return (self.out / "calls").read_text().splitlines()

    def test_difference_of_two_means(self):
        # Variances 2 and 8 of two runs each: the standard error is sqrt(2 / 2 + 8 / 2).
        compared = studies.difference_of({1: 10, 2: 14}, {1: 3, 2: 5})
        self.assertAlmostEqual(compared["difference"], 8)
        self.assertAlmostEqual(compared["bound"], 2 * 5**0.5)
        self.assertEqual(compared["paired"]["runs"], 2)
        self.assertAlmostEqual(compared["paired"]["mean"], 8)
        self.assertAlmostEqual(compared["paired"]["deviation"], 2**0.5)

    def test_one_run_says_nothing_of_the_noise(self):
        compared = studies.difference_of({2: 10}, {1: 3, 2: 5})
        self.assertIsNone(compared["bound"])
        self.assertEqual(compared["paired"], {"runs": 1, "mean": 5, "deviation": 0})
        self.assertIsNone(studies.difference_of({3: 10}, {1: 3})["paired"])

    def test_every_variant_is_compared_with_the_plain_network(self):
        table = self.study("--only", "blur", "--seeds", "2", "--variant", "wide:width=96,stem=deep")
        self.assertIn("| blur | downsample=blur | 128 | 2 | 54.50 ± 0.71 % | +3.00 (two standard errors 1.41) | "
                      "+3.00 ± 0.00 | 1.5 M | 42 M | 100 | 4 |", table)
        self.assertIn("| wide | width=96, stem=deep | 128 | 2 | 41.50 ± 0.71 % | -10.00", table)
        self.assertEqual(self.calls()[:3], ["--run plain-seed1 model.width=64",
                                            "--run blur-seed1 model.width=64 model.downsample=blur",
                                            "--run wide-seed1 model.width=96 model.stem=deep"])
        report = json.loads((self.out / "study.json").read_text())
        self.assertAlmostEqual(report["blur"]["difference"], 0.03)
        self.assertEqual(report["plain"]["multiply_adds"], 42000000)

    def test_finished_runs_stay_and_interrupted_ones_go_on(self):
        with mock.patch.dict(os.environ, BREAK_OFF="blur-seed1"), self.assertRaises(studies.subprocess.CalledProcessError):
            self.study("--only", "blur", "--seeds", "1")
        self.study("--only", "blur", "--seeds", "1")
        self.study("--only", "blur", "--seeds", "1", "--print")
        self.assertEqual([call.split(" model")[0] for call in self.calls()],
                         ["--run plain-seed1", "--run blur-seed1", "--resume blur-seed1"])

    def test_after_so_many_minutes_nothing_begins(self):
        self.assertIn("there are no finished runs", self.refusal("--minutes", "0"))

    def test_a_folder_holds_runs_that_are_alike(self):
        self.study("--only", "blur", "--seeds", "1")
        self.assertIn("holds runs with epochs 20.0, not 10.0; give another --out", self.refusal("--epochs", "10"))

    def test_unknown_variants(self):
        self.assertIn("'blurr' is none of plain, ", self.refusal("--only", "blurr"))
        self.assertIn("wants NAME:KEY=VALUE,KEY=VALUE", self.refusal("--variant", "wide"))


if __name__ == "__main__":
    unittest.main()
