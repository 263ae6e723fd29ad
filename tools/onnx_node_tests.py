#!/usr/bin/env python3
"""Runs ONNX's own tests, as its newest release has them, by weft and by ONNX Runtime, and counts what passes.

Prints how many tests of the operators of ai.onnx pass, by group of operators; then the tests that are counted apart: of
other domains, of dtypes that weft lacks, of strings, of whole models; then what weft refuses and why, and what is wrong.
Results are compared as ONNX's own runner does: the tolerance is each test's (1e-3 relative, 1e-7 absolute, 2^-6 relative
for bf16). Where an operator draws at random, shapes and dtypes are compared alone.

weft's program reads one test per line from standard input: FOLDER, rtol, atol and "values" or "shapes", with tabs between
them. FOLDER has model.onnx and test_data_set_N/input_I.pb and output_I.pb (TensorProto, SequenceProto or OptionalProto, by
the type of the I-th input or output; of inputs those that no initializer gives). It answers at once with a line of JSON,
in the order of the tests: {"test": name of the folder, "status": "passed", "wrong" or "refused", "message": why,
"op": which operator is refused}. Where the program crashes or takes a minute, the test at hand is noted as crashed, and
the program starts anew behind it. tools/onnx_runtime_cases.py does the same by ONNX Runtime.

  tools/onnx_node_tests.py --json node_tests.json       # seconds
  tools/onnx_node_tests.py --without-weft               # ONNX Runtime alone
  tools/onnx_node_tests.py --tests 'test_resize.*' --brief

Exits 1 where fewer than --at-least percent pass, or weft crashes. The first run installs ONNX (tools/onnx_peer.py).
"""
import argparse
import collections
import json
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Callable, NamedTuple

import onnx_peer
from case_runner import Result, run_cases

if TYPE_CHECKING:
    import onnx_cases

ROOT = onnx_peer.ROOT
STATUSES = ("passed", "refused", "wrong", "crashed")
DTYPES = {"f32", "f64", "f16", "bf16", "bool", *(f"{sign}{bits}" for sign in "iu" for bits in (2, 4, 8, 16, 32, 64))}
GROUPS = {
    "elementwise": """Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil
        Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN
        LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink
        Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor""",
    "casts": "BitCast Cast CastLike",
    "reductions and scans": """ArgMax ArgMin CumProd CumSum Hardmax LogSoftmax ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax TopK Unique""",
    "matrices": "Det Einsum Gemm MatMul",
    "shapes and indexing": """CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten
        Gather GatherElements GatherND Identity NonZero OneHot Pad Range Reshape ReverseSequence Scatter ScatterElements
        ScatterND Shape Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose Trilu Unsqueeze""",
    "convolution and pooling": """AveragePool CausalConvWithState Col2Im Conv ConvTranspose DeformConv GlobalAveragePool
        GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool MaxUnpool RoiAlign""",
    "normalisation": """BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization
        MeanVarianceNormalization RMSNormalization""",
    "recurrent": "GRU LSTM RNN",
    "attention": "Attention FlexAttention LinearAttention RotaryEmbedding",
    "quantized": """ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul
        QuantizeLinear""",
    "losses and dropout": "Dropout NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "control flow": "If Loop Scan",
    "sequences and optionals": """ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt
        SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence""",
    "random": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "images": "AffineGrid GridSample ImageDecoder NonMaxSuppression Resize Upsample",
    "signals": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    "texts": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
}
GROUP_OF = {op: group for group, ops in GROUPS.items() for op in ops.split()}
# Statuses of a test by each program: what the table counts.
Row = tuple["onnx_cases.Case", dict[str, Result]]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=str(ROOT / "build/tests/tools/onnx_node_tests"), metavar="PROGRAM",
                        help="that runs tests by weft; default: %(default)s")
    parser.add_argument("--without-weft", action="store_true", help="ONNX Runtime alone")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/onnx_node_tests", metavar="DIR",
                        help="where the tests lie, written if they do not; default: %(default)s")
    parser.add_argument("--tests", metavar="PATTERN", help="only those whose whole names match; a regular expression")
    parser.add_argument("--brief", action="store_true", help="the table alone")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every test's result")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="of weft's share that passes")
    arguments = parser.parse_args()
    if not arguments.without_weft and not pathlib.Path(arguments.weft).exists():
        parser.error(f"there is no {arguments.weft}. Build it: cmake --build build --target onnx_node_tests. "
                     "Or run ONNX Runtime alone: --without-weft")
    return arguments


if __name__ == "__main__":
    ARGUMENTS = parse_arguments()  # before anything is installed
    onnx_peer.enter()


class Section(NamedTuple):
    """Part of the table; a row per group."""

    title: str
    holds: Callable[["onnx_cases.Case"], bool]
    group: Callable[["onnx_cases.Case"], str]


def is_counted(case) -> bool:
    """Whether the test is among those of which a share is asked for."""
    return case.kind == "node" and case.domain == "ai.onnx" and DTYPES.issuperset(case.dtypes)


def reason_apart(case) -> str:
    if case.kind != "node":
        return f"models: {case.kind}"
    if case.domain != "ai.onnx":
        return f"domain {case.domain}"
    return "strings" if "string" in case.dtypes else "float8, float4 and complex numbers"


SECTIONS = [
    Section("operators of ai.onnx", is_counted, lambda case: GROUP_OF.get(case.op, "others")),
    Section("counted apart", lambda case: not is_counted(case), reason_apart),
]


def counts_text(rows: list[Row], programs: list[str]) -> str:
    cells = []
    for program in programs:
        counted = collections.Counter(results[program].status for _, results in rows)
        cells += [str(counted[status]) for status in STATUSES]
    return f"{len(rows)} | {' | '.join(cells)}"


def table(rows: list[Row], programs: list[str]) -> list[str]:
    heads = " | ".join(f"{program} {status}" for program in programs for status in STATUSES)
    lines = []
    for section in SECTIONS:
        held = [row for row in rows if section.holds(row[0])]
        if not held:
            continue
        lines += [f"| {section.title} | tests | {heads} |", f"|---|{'---|' * (1 + len(programs) * len(STATUSES))}"]
        groups = collections.defaultdict(list)
        for row in held:
            groups[section.group(row[0])].append(row)
        order = [*GROUPS, *sorted(set(groups) - set(GROUPS))]
        lines += [f"| {group} | {counts_text(groups[group], programs)} |" for group in order if group in groups]
        lines += [f"| **together** | {counts_text(held, programs)} |", ""]
    return lines


def share(rows: list[Row], program: str) -> float:
    """Percent of the counted tests that pass."""
    counted = [results[program].status for case, results in rows if is_counted(case)]
    return 100 * counted.count("passed") / len(counted) if counted else 100.0


def reasons(rows: list[Row], program: str, status: str) -> list[str]:
    """Tests of this status, those of one reason on one line."""
    by_reason = collections.defaultdict(list)
    for case, results in rows:
        result = results[program]
        if result.status == status:
            by_reason[f"{result.op}: {result.message}" if result.op else result.message].append(case.name)
    return [f"  {reason}\n    {', '.join(names)}" for reason, names in sorted(by_reason.items())]


def write_json(path: pathlib.Path, rows: list[Row], programs: list[str], versions: dict[str, str]) -> None:
    tests = [{**case._asdict(), "group": GROUP_OF.get(case.op, ""), "counted": is_counted(case),
              **{program: results[program]._asdict() for program in programs}} for case, results in rows]
    for test in tests:
        test["folder"] = f"{test['kind']}/{test['name']}"
    report = {"versions": versions, "share_passed": {program: round(share(rows, program), 2) for program in programs},
              "counted": sum(test["counted"] for test in tests), "tests": tests}
    path.write_text(json.dumps(report, indent=1) + "\n")


def main(arguments: argparse.Namespace) -> int:
    import onnx
    import onnxruntime
    import onnx_cases

    cases = onnx_cases.load_cases(arguments.folder)
    if arguments.tests:
        cases = [case for case in cases if re.fullmatch(arguments.tests, case.name)]
    commands = {} if arguments.without_weft else {"weft": [arguments.weft]}
    commands["ONNX Runtime"] = [sys.executable, str(ROOT / "tools/onnx_runtime_cases.py")]
    lines = [case.line() for case in cases]
    by_program = {program: run_cases(command, lines, shows=sys.stderr.isatty()) for program, command in commands.items()}
    programs = list(commands)
    rows = [(case, {program: by_program[program][index] for program in programs}) for index, case in enumerate(cases)]

    versions = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    print(f"ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__} on the CPU\n")
    print("\n".join(table(rows, programs)))
    for program in programs:
        print(f"{program} passes {share(rows, program):.1f} % of the tests of operators of ai.onnx in the dtypes f32, f64, "
              "f16, bf16, i2 to i64, u2 to u64 and bool")
    first = programs[0]
    if not arguments.brief:
        for status in STATUSES[1:]:
            if listed := reasons(rows, first, status):
                print(f"\n{first} {status}:", *listed, sep="\n")
    if arguments.json:
        write_json(arguments.json, rows, programs, versions)
    crashed = any(results["weft"].status == "crashed" for _, results in rows) if "weft" in programs else False
    return 1 if crashed or share(rows, first) < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main(ARGUMENTS))
