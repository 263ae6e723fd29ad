#!/usr/bin/env python3
"""Runs tests of ONNX by ONNX Runtime on the CPU: reads folders from standard input, prints a line of JSON for each.

A line is FOLDER, rtol, atol and "values" or "shapes", with tabs between them. The answer is {"test": name, "status":
"passed", "wrong" or "refused", "message": ...}. build/tests/tools/onnx_node_tests does the same by weft;
tools/onnx_node_tests.py starts both. Results are compared as ONNX's own runner compares them.

ONNX Runtime's Python takes no arrays of bf16 and of types below 8 bits: such inputs become constants of the model, and such
results are cast to f32 in it, after their type was compared.
"""
import json
import pathlib
import re
import sys
from typing import Any, Iterator

import onnx_peer

if __name__ == "__main__":
    onnx_peer.enter()

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import numpy_helper  # noqa: E402

BF16_RTOL = 2**-6  # as ONNX's runner has it: two units in the last place
READERS = {
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
}


class Wrong(Exception):
    """A result that is not the one that is wanted."""


def read(path: pathlib.Path, kind: onnx.TypeProto) -> Any:
    proto, convert = READERS[kind.WhichOneof("value")]
    return convert(proto.FromString(path.read_bytes()))


def read_all(folder: pathlib.Path, prefix: str, values: list[onnx.ValueInfoProto]) -> list:
    count = len(list(folder.glob(f"{prefix}_*.pb")))
    return [read(folder / f"{prefix}_{index}.pb", values[index].type) for index in range(count)]


def compare(got: Any, wanted: Any, rtol: float, atol: float, values: bool) -> None:
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            raise Wrong("another sequence")
        for one, other in zip(got, wanted):
            compare(one, other, rtol, atol, values)
        return
    if wanted is None or got is None:
        if got is not wanted:
            raise Wrong("one of the optional values is absent")
        return
    got, wanted = numpy.asarray(got), numpy.asarray(wanted)
    if got.shape != wanted.shape:
        raise Wrong(f"shape {got.shape}, not {wanted.shape}")
    if wanted.dtype.kind in "OUS":
        if not numpy.array_equal(got.astype(str), wanted.astype(str)):
            raise Wrong("other strings")
        return
    if got.dtype != wanted.dtype:
        raise Wrong(f"dtype {got.dtype}, not {wanted.dtype}")
    if not values:
        return
    if got.dtype.name == "bfloat16":
        got, wanted, rtol = got.astype(numpy.float32), wanted.astype(numpy.float32), max(rtol, BF16_RTOL)
    try:
        numpy.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)
    except AssertionError as difference:
        raise Wrong(" ".join(str(difference).split())[:300]) from None


def is_foreign(value: Any) -> bool:
    """Whether NumPy itself lacks the type, so that ONNX Runtime's Python takes no array of it."""
    return isinstance(value, numpy.ndarray) and value.dtype.isbuiltin == 2  # one that was registered with NumPy


class Bridge:
    """The model, changed so that all that goes in and out are arrays of NumPy's own types."""

    def __init__(self, model: onnx.ModelProto, asked: list[onnx.ValueInfoProto], inputs: list, outputs: list):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        self.feeds, self.names, self.cast = {}, [], {}
        for value, array in zip(asked, inputs):
            if is_foreign(array):
                graph.input.remove(value)
                graph.initializer.append(numpy_helper.from_array(array, value.name))
            else:
                self.feeds[value.name] = array
        for value, array in zip(model.graph.output, outputs):
            if is_foreign(array):
                self.cast[len(self.names)] = array.dtype
                graph.output.remove(value)
                name = f"{value.name}_as_f32"
                graph.node.append(onnx.helper.make_node("Cast", [value.name], [name], to=onnx.TensorProto.FLOAT))
                graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
                self.names.append(name)
            else:
                self.names.append(value.name)

    def run(self) -> list:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(self.names, self.feeds)
        return [result.astype(self.cast[index]) if index in self.cast else result for index, result in enumerate(results)]


def run_case(folder: pathlib.Path, rtol: float, atol: float, values: bool) -> None:
    model = onnx.load(folder / "model.onnx")
    constants = {tensor.name for tensor in model.graph.initializer}
    # Models before IR 4 list their constants among the inputs.
    asked = [value for value in model.graph.input if value.name not in constants]
    data_sets = sorted(folder.glob("test_data_set_*"))
    if not data_sets:
        raise Wrong("the folder has no test_data_set_0")
    for samples in data_sets:
        inputs = read_all(samples, "input", asked)
        outputs = read_all(samples, "output", model.graph.output)
        for got, wanted in zip(Bridge(model, asked, inputs, outputs).run(), outputs):
            compare(got, wanted, rtol, atol, values)


def answers(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    for line in lines:
        folder, rtol, atol, compares = line.rstrip("\n").split("\t")
        path = pathlib.Path(folder)
        answer = {"test": path.name, "status": "passed"}
        try:
            run_case(path, float(rtol), float(atol), compares == "values")
        except Wrong as difference:
            answer |= {"status": "wrong", "message": str(difference)}
        except Exception as refusal:  # noqa: BLE001: ONNX Runtime raises many kinds
            message = re.sub(r"^\[ONNXRuntimeError\] : \d+ : ", "", " ".join(str(refusal).split()))
            answer |= {"status": "refused", "message": message[:300]}
        yield answer


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    for answer in answers(sys.stdin):
        print(json.dumps(answer), flush=True)
