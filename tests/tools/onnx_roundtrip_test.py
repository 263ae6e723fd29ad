"""tools/onnx_roundtrip.py on a program in weft's place; the distances of tools/onnx_samples.py."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}; install Debian's python3-numpy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import onnx_roundtrip
from onnx_samples import Sample, distance, save_samples

# "infer" doubles its input and adds what the file holds; a file that holds nothing is refused.
WEFT = f"""#!{sys.executable}
import pathlib, sys
import numpy
command, file, *words = sys.argv[1:]
held = pathlib.Path(file).read_text()
if not held:
    sys.exit("weft: 'Foo' is no operator that weft knows")
if command == "import":
    print("one node")
else:
    name, _, path = words[words.index("--input") + 1].partition("=")
    result = 2 * numpy.load(path) + numpy.float32(held)
    numpy.save(pathlib.Path(words[words.index("--output-dir") + 1]) / "y.npy", result)
"""


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = self.folder / "weft"
        program.write_text(WEFT)
        program.chmod(0o755)
        self.weft = onnx_roundtrip.Weft(str(program))

    def add_file(self, name, held):
        (self.folder / f"{name}.onnx").write_text(held)
        inputs = [numpy.arange(batch * 3, dtype=numpy.float32).reshape(batch, 3) for batch in (2, 3)]
        save_samples([Sample({"x": x}, {"y": 2 * x}) for x in inputs], self.folder / name)

    def check(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            failures = onnx_roundtrip.check_reading(self.weft, self.folder, None)
        return failures, printed.getvalue()

    def test_equal_outputs_pass_in_every_batch(self):
        self.add_file("model.dynamo", "0")
        failures, printed = self.check()
        self.assertEqual(failures, 0)
        self.assertIn("ok      model.dynamo.onnx: batch_2 0.0e+00, batch_3 0.0e+00; one node", printed)

    def test_outputs_too_far_away_fail(self):
        self.add_file("model", "0.01")
        self.add_file("other", "0.0001")
        failures, printed = self.check()
        self.assertEqual(failures, 1)
        self.assertIn("FAILED  model.onnx", printed)
        self.assertIn("ok      other.onnx", printed)

    def test_a_refusal_fails_with_its_message(self):
        self.add_file("model", "")
        failures, printed = self.check()
        self.assertEqual(failures, 1)
        self.assertIn("FAILED  model.onnx: exit 1: weft: 'Foo' is no operator that weft knows", printed)

    def test_a_file_without_samples_fails(self):
        (self.folder / "model.onnx").write_text("0")
        self.assertEqual(self.check()[0], 1)


class Distance(unittest.TestCase):
    def test_it_is_relative_to_the_largest_element(self):
        self.assertAlmostEqual(distance(numpy.array([1.0, 9.0]), numpy.array([0.0, 10.0])), 0.1)

    def test_what_cannot_be_compared_is_infinitely_far(self):
        wanted = numpy.zeros(2, numpy.float32)
        for got in (None, numpy.zeros(3, numpy.float32), numpy.zeros(2), numpy.full(2, numpy.nan, numpy.float32)):
            self.assertEqual(distance(got, wanted), numpy.inf)


if __name__ == "__main__":
    unittest.main()
