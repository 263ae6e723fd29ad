"""ONNX's own tests as folders, as its newest release has them, and what the table of tools/onnx_node_tests.py asks of each.

A folder holds model.onnx and test_data_set_N/input_I.pb and output_I.pb. The release holds the files of some kinds of
tests; those of single operators (`node`) and small models (`simple`) are made by its code.
"""
import argparse
import json
import pathlib
import re
import shutil
import warnings
from typing import Iterator, NamedTuple
from unittest import mock

import onnx
from onnx.backend.test import cmd_tools
from onnx.backend.test.loader import load_node_model_tests
from onnx.backend.test.runner import Runner

DTYPES = {"FLOAT": "f32", "DOUBLE": "f64", "FLOAT16": "f16", "BFLOAT16": "bf16", "BOOL": "bool", "STRING": "string",
          **{f"INT{bits}": f"i{bits}" for bits in (2, 4, 8, 16, 32, 64)},
          **{f"UINT{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)}}
# An operator that draws differs from test to test: only the shapes and dtypes of its results can be compared.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
KINDS = ("node", "simple", "light", "pytorch-converted", "pytorch-operator")


class Case(NamedTuple):
    name: str
    kind: str  # of KINDS
    folder: str
    op: str  # that the test is for; of a `node` test only
    domain: str  # of its operators; the first that is not ai.onnx
    dtypes: list[str]  # of all values: weft's names, or ONNX's in lower case where weft has none
    rtol: float
    atol: float
    compares: str  # "values" or "shapes"

    def line(self) -> str:
        """What the programs that run tests read."""
        return f"{self.folder}\t{self.rtol:g}\t{self.atol:g}\t{self.compares}"


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and those in its nodes' attributes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                yield from graphs_of(inner)


def element_types(kind: onnx.TypeProto) -> Iterator[int]:
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        yield from element_types(getattr(kind, which).elem_type)
    elif which == "map_type":
        yield kind.map_type.key_type
        yield from element_types(kind.map_type.value_type)
    elif which:
        yield getattr(kind, which).elem_type


def dtypes_of(model: onnx.ModelProto) -> list[str]:
    """Of inputs, outputs, constants, and of what lies between as far as shape inference knows it."""
    found = set()
    for graph in graphs_of(onnx.shape_inference.infer_shapes(model).graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            found.update(element_types(value.type))
        tensors = [*graph.initializer, *(a.t for node in graph.node for a in node.attribute if a.HasField("t"))]
        found.update(tensor.data_type for tensor in tensors)
        found.update(onnx.TensorProto.STRING for node in graph.node for a in node.attribute
                     if node.op_type == "Constant" and a.name in ("value_string", "value_strings"))
    names = (onnx.TensorProto.DataType.Name(number) for number in found - {onnx.TensorProto.UNDEFINED})
    return sorted(DTYPES.get(name, name.lower()) for name in names)


def describe(folder: pathlib.Path, kind: str, tolerance: tuple[float, float], ops: dict[str, str]) -> Case:
    name = folder.name
    model = onnx.load(folder / "model.onnx")
    nodes = [node for graph in graphs_of(model.graph) for node in graph.node]
    domains = sorted({node.domain for node in nodes} - {"", "ai.onnx"})
    # Of operators that are functions there is a second test of what they stand for.
    op = ops.get(re.sub(r"_expanded(_ver\d+)?$", "", name), "") if kind == "node" else ""
    draws = any(node.op_type in RANDOM for node in nodes)
    drops = name.startswith("test_training_dropout") and "zero_ratio" not in name
    return Case(name, kind, str(folder), op, domains[0] if domains else "ai.onnx", dtypes_of(model), *tolerance,
                "shapes" if draws or drops else "values")


def write_light(data: pathlib.Path, folder: pathlib.Path) -> dict[str, tuple[float, float]]:
    """Known networks with constant weights, on the input that the release's outputs belong to; returns their tolerances."""
    tolerances = {}
    for case in cmd_tools.model_test.collect_testcases():
        if case.kind != "real":
            continue
        model_file = data / "light" / pathlib.Path(case.url).name
        samples = folder / case.name / "test_data_set_0"
        samples.mkdir(parents=True)
        shutil.copy(model_file, folder / case.name / "model.onnx")
        graph = onnx.load(model_file).graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in constants]
        for index, value in enumerate(inputs):
            array = Runner.generate_dummy_data(value, name=case.name)
            tensor = onnx.numpy_helper.from_array(array, value.name)
            (samples / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
        for index in range(len(graph.output)):
            shutil.copy(data / "light" / f"{model_file.stem}_output_{index}.pb", samples / f"output_{index}.pb")
        tolerances[case.name] = (case.rtol, case.atol)
    return tolerances


def generate(folder: pathlib.Path) -> list[Case]:
    """Writes all folders anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the overflows that the tests mean
        node_tests = load_node_model_tests()
        small_models = [case for case in cmd_tools.model_test.collect_testcases() if case.kind == "simple"]
        # The release's own writer; by itself it writes the models alone.
        with mock.patch.object(cmd_tools.model_test, "collect_testcases", lambda: [*node_tests, *small_models]):
            cmd_tools.generate_data(argparse.Namespace(output=str(folder)))
    data = pathlib.Path(cmd_tools.DATA_DIR)
    for kind in ("pytorch-converted", "pytorch-operator"):
        shutil.copytree(data / kind, folder / kind)
    tolerances = {case.name: (case.rtol, case.atol) for case in [*node_tests, *small_models]}
    tolerances |= write_light(data, folder / "light")
    ops = {case.name: case.model.graph.node[0].op_type for case in node_tests if len(case.model.graph.node) == 1}
    return [describe(path.parent, kind, tolerances.get(path.parent.name, (1e-3, 1e-7)), ops)
            for kind in KINDS for path in sorted((folder / kind).glob("*/model.onnx"))]


def load_cases(folder: pathlib.Path) -> list[Case]:
    """From the folder, written anew where it is of another release."""
    folder = folder.resolve()
    index = folder / "cases.json"
    if index.exists():
        kept = json.loads(index.read_text())
        if kept["onnx"] == onnx.__version__ and kept["folder"] == str(folder):
            return [Case(**case) for case in kept["cases"]]
    cases = generate(folder)
    found = {"onnx": onnx.__version__, "folder": str(folder), "cases": [case._asdict() for case in cases]}
    index.write_text(json.dumps(found, indent=1))
    return cases
