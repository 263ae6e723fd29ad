#!/usr/bin/python3
"""Tests tools/pytorch_to_safetensors.py on files that torch.save writes here. Exits 77 where PyTorch is absent."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import struct
import sys
import tempfile
import unittest
from unittest import mock

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}; install python3-torch")
    sys.exit(77)

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "pytorch_to_safetensors.py"
SPEC = importlib.util.spec_from_file_location("pytorch_to_safetensors", TOOL)
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)
DTYPES = {"F32": numpy.float32, "I64": numpy.int64, "U8": numpy.uint8}


def read_safetensors(path):
    """By the format's description alone: name -> (dtype, array); offsets must cover the data without gaps."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    data, tensors, end = content[8 + length :], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        assert first == end, name
        end = last
        array = numpy.frombuffer(data[first:last], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = (entry["dtype"], array)
    assert end == len(data)
    return tensors


class PytorchToSafetensors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        torch.manual_seed(1)
        self.module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(5, 2))

    def tearDown(self):
        self.folder.cleanup()

    def run_tool(self, name):
        """What it says as it gives up; None where it does its work."""
        command = [str(TOOL), str(self.path / name), str(self.path / "out")]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()):
            try:
                tool.main()
            except SystemExit as end:
                return str(end.code)
        return None

    def convert(self, content):
        torch.save(content, self.path / "in.pth")
        return self.run_tool("in.pth")

    def converted(self, content):
        self.assertIsNone(self.convert(content))
        return read_safetensors(self.path / "out")

    def expect_state(self, tensors, state):
        self.assertEqual(set(tensors), set(state))
        for name, value in state.items():
            dtype, array = tensors[name]
            self.assertEqual(dtype, "F32" if value.is_floating_point() else "I64", name)
            numpy.testing.assert_array_equal(array, value.numpy(), name)

    def test_state_dictionary(self):
        state = self.module.state_dict()
        self.assertIn("1.num_batches_tracked", state)  # a scalar of whole numbers
        self.expect_state(self.converted(state), state)

    def test_state_dictionary_within_a_checkpoint(self):
        state = self.module.state_dict()
        for key in ("state_dict", "model", "model_state_dict", "net"):
            self.expect_state(self.converted({"epoch": 3, "loss": 0.5, key: state}), state)

    def test_other_floating_types_become_f32(self):
        values = torch.tensor([0.5, -2.0, 3.25])
        tensors = self.converted({"half": values.half(), "brain": values.bfloat16(), "double": values.double()})
        self.expect_state(tensors, {name: values for name in ("half", "brain", "double")})

    def test_strided_and_shared_tensors_keep_their_values(self):
        square = torch.arange(12.0).reshape(3, 4)
        state = {"transposed": square.t(), "part": square[1:, ::2], "itself": square}
        self.expect_state(self.converted(state), state)

    def test_parameters_that_want_gradients(self):
        weight = torch.nn.Parameter(torch.ones(2, 2))
        self.expect_state(self.converted({"weight": weight}), {"weight": weight.detach()})

    def test_objects_beside_the_state_are_left_out(self):
        weight = torch.ones(3)
        checkpoint = {"state_dict": {"w": weight}, "arguments": self.module, "path": pathlib.Path("x"), "kind": io.StringIO}
        self.expect_state(self.converted(checkpoint), {"w": weight})

    def test_the_format_before_archives(self):
        state = self.module.state_dict()
        torch.save(state, self.path / "old.pth", _use_new_zipfile_serialization=False)
        self.assertIsNone(self.run_tool("old.pth"))
        self.expect_state(read_safetensors(self.path / "out"), state)

    def test_what_holds_no_state_dictionary_is_refused(self):
        for content in ({"epoch": 3}, [torch.ones(2)], self.module):
            self.assertIn("save module.state_dict()", self.convert(content))
            self.assertFalse((self.path / "out").exists())

    def test_code_is_not_run(self):
        class Malice:
            def __init__(self, path):
                self.path = path

            def __reduce__(self):
                return os.mkdir, (str(self.path),)

        self.expect_state(self.converted({"w": torch.ones(2), "x": Malice(self.path / "harm")}), {"w": torch.ones(2)})
        self.assertFalse((self.path / "harm").exists())

    def test_files_that_are_missing_or_damaged(self):
        torch.save(self.module.state_dict(), self.path / "whole.pth")
        whole = (self.path / "whole.pth").read_bytes()
        for content in (None, b"", b"no archive", whole[: len(whole) // 2]):
            if content is not None:
                (self.path / "bad.pth").write_bytes(content)
            self.assertRegex(self.run_tool("bad.pth"), "cannot read '.*bad.pth': .")


if __name__ == "__main__":
    unittest.main()
