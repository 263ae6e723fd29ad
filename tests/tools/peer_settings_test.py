"""benchmarks/peer_settings.py: what is tried, what wins, what is kept; and the environment of benchmarks/peer_python.py."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import peer_python
from peer_settings import BestSettings, Setting, settings, try_all
from sides import Case

CASE = Case("lenet5", "1,28,28", 64, 10)
EAGER = Setting("f32", "contiguous", "eager")
COMPILED = Setting("f32", "contiguous", "compiled")
LAST = Setting("f32", "channels-last", "eager")


class Speeds:
    """A peer whose figures are given, one list per setting; it counts how often it was asked."""

    def __init__(self, figures):
        self.figures, self.asked = {key: list(values) for key, values in figures.items()}, []

    def __call__(self, setting):
        self.asked.append(setting)
        if setting not in self.figures:
            raise RuntimeError("does not work\nno compiler")
        return self.figures[setting].pop(0)


class Tried(unittest.TestCase):
    def test_pictures_have_two_memory_formats_and_token_sequences_one(self):
        self.assertEqual(len(settings("3,32,32", ["f32"])), 4)
        self.assertEqual(set(settings("128", ["f32", "bf16"])),
                         {Setting(p, "contiguous", m) for p in ("f32", "bf16") for m in ("eager", "compiled")})

    def test_those_near_the_best_are_tried_again_and_their_faster_figure_counts(self):
        peer = Speeds({EAGER: [100.0, 130.0], COMPILED: [105.0, 104.0], LAST: [80.0]})
        speeds, _ = try_all([EAGER, COMPILED, LAST], peer)
        self.assertEqual(speeds, {EAGER: 130.0, COMPILED: 105.0, LAST: 80.0})
        self.assertEqual(peer.asked.count(LAST), 1)

    def test_the_other_memory_format_is_compiled_only_if_the_first_comes_near(self):
        compiled_last = LAST._replace(mode="compiled")
        far = Speeds({EAGER: [100.0], LAST: [80.0], COMPILED: [80.0], compiled_last: [81.0]})
        try_all(settings("3,32,32", ["f32"]), far)
        self.assertNotIn(compiled_last, far.asked)
        near = Speeds({EAGER: [100.0, 100.0], LAST: [80.0], COMPILED: [88.0], compiled_last: [96.0, 110.0]})
        speeds, _ = try_all(settings("3,32,32", ["f32"]), near)
        self.assertEqual(max(speeds, key=speeds.get), compiled_last)

    def test_the_memory_format_that_is_faster_eagerly_is_compiled_first(self):
        compiled_last = LAST._replace(mode="compiled")
        peer = Speeds({EAGER: [80.0], LAST: [100.0], COMPILED: [10.0], compiled_last: [10.0]})
        try_all(settings("3,32,32", ["f32"]), peer)
        self.assertEqual(peer.asked[2], compiled_last)

    def test_one_that_fails_is_named_with_its_reason_and_the_others_go_on(self):
        speeds, failed = try_all([EAGER, COMPILED], Speeds({EAGER: [1.0]}))
        self.assertEqual(list(speeds), [EAGER])
        self.assertEqual(failed, {"f32, contiguous, compiled": "no compiler"})


class Kept(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "best.json"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_second_run_tries_nothing(self):
        BestSettings("pytorch 2", 2, self.path).best(CASE, ["f32"], Speeds({LAST: [5.0]}))
        peer = Speeds({})
        best, _ = BestSettings("pytorch 2", 2, self.path).best(CASE, ["f32"], peer)
        self.assertEqual((best, peer.asked), (LAST, []))

    def test_another_version_threads_batch_or_precision_is_tried_anew(self):
        BestSettings("pytorch 2", 2, self.path).best(CASE, ["f32"], Speeds({LAST: [5.0]}))
        for framework, threads, case, precisions in (("pytorch 3", 2, CASE, ["f32"]), ("pytorch 2", 1, CASE, ["f32"]),
                                                     ("pytorch 2", 2, CASE._replace(batch=8), ["f32"]),
                                                     ("pytorch 2", 2, CASE, ["bf16", "f32"])):
            best, _ = BestSettings(framework, threads, self.path).best(case, precisions, Speeds({EAGER: [5.0]}))
            self.assertEqual(best, EAGER)
        self.assertEqual(len(json.loads(self.path.read_text())), 5)

    def test_nothing_is_kept_where_nothing_works(self):
        best, entry = BestSettings("pytorch 2", 2, self.path).best(CASE, ["f32"], Speeds({}))
        self.assertIsNone(best)
        self.assertEqual(len(entry["failed"]), 4)
        self.assertFalse(self.path.exists())


class Environment(unittest.TestCase):
    def test_what_is_complete_is_taken_and_the_list_of_requirements_decides(self):
        with tempfile.TemporaryDirectory() as folder:
            requirements = pathlib.Path(folder) / "requirements.txt"
            requirements.write_text("")
            environment = pathlib.Path(folder) / "peer"
            environment.mkdir()
            (environment / "complete").write_text("")
            self.assertEqual(peer_python.peer_python(environment, requirements), str(environment / "bin/python3"))
            requirements.write_text("/no/such/package\n")
            with self.assertRaisesRegex(peer_python.NoPeer, "PEER_PYTHON"):
                peer_python.peer_python(environment, requirements)
            self.assertFalse((environment / "complete").exists())

    def test_a_python_that_the_user_names_is_taken(self):
        os.environ["PEER_PYTHON"] = "/opt/python3"
        self.addCleanup(os.environ.pop, "PEER_PYTHON")
        self.assertEqual(peer_python.peer_python(), "/opt/python3")


if __name__ == "__main__":
    unittest.main()
