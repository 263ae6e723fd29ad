"""tools/case_runner.py: what a program answers, and what is noted if it does not; the table of tools/onnx_node_tests.py."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import onnx_node_tests
from case_runner import Result, run_cases

# Does what the line says.
PROGRAM = """
import json, os, signal, sys, time
for line in sys.stdin:
    line = line.strip()
    if line == "crash":
        print("at address 0", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if line == "end":
        sys.exit(3)
    if line == "hang":
        time.sleep(60)
    print(json.dumps({"test": line, "status": line, "message": "why"}), flush=True)
"""


def run(*lines, seconds=20.0):
    return run_cases([sys.executable, "-c", PROGRAM], lines, seconds)


def case(name="test_add", op="Add", kind="node", domain="ai.onnx", dtypes=("f32",)):
    return types.SimpleNamespace(name=name, op=op, kind=kind, domain=domain, dtypes=list(dtypes))


def rows(*cases_and_statuses):
    return [(case, {"weft": Result(status, "why")}) for case, status in cases_and_statuses]


class Runner(unittest.TestCase):
    def test_answers_are_taken_in_order(self):
        self.assertEqual([result.status for result in run("passed", "wrong", "refused")], ["passed", "wrong", "refused"])
        self.assertEqual(run("refused")[0].message, "why")

    def test_a_crash_is_noted_where_it_was_and_the_rest_is_run(self):
        results = run("passed", "crash", "crash", "wrong")
        self.assertEqual([result.status for result in results], ["passed", "crashed", "crashed", "wrong"])
        self.assertEqual(results[1].message, "SIGSEGV: at address 0")

    def test_an_early_end_is_a_crash(self):
        results = run("end", "passed")
        self.assertEqual([result.status for result in results], ["crashed", "passed"])
        self.assertEqual(results[0].message, "ended with 3")

    def test_a_program_that_hangs_is_ended(self):
        results = run("hang", "passed", seconds=3)
        self.assertEqual([result.status for result in results], ["crashed", "passed"])
        self.assertEqual(results[0].message, "no answer within 3 s")


class Table(unittest.TestCase):
    def test_the_share_counts_operators_of_the_default_domain_in_wefts_dtypes(self):
        tests = rows((case(), "passed"), (case(dtypes=["i4", "bf16"]), "refused"), (case(dtypes=["string"]), "refused"),
                     (case(dtypes=["float8e5m2"]), "refused"), (case(domain="ai.onnx.ml"), "wrong"),
                     (case(kind="light"), "wrong"))
        self.assertEqual(onnx_node_tests.share(tests, "weft"), 50)

    def test_rows_are_groups_of_operators(self):
        lines = onnx_node_tests.table(rows((case(), "passed"), (case(op="Mul"), "wrong"), (case(op="LSTM"), "crashed"),
                                           (case(dtypes=["string"]), "refused")), ["weft"])
        self.assertIn("| elementwise | 2 | 1 | 0 | 1 | 0 |", lines)
        self.assertIn("| recurrent | 1 | 0 | 0 | 0 | 1 |", lines)
        self.assertIn("| strings | 1 | 0 | 1 | 0 | 0 |", lines)
        self.assertEqual([line for line in lines if "together" in line],
                         ["| **together** | 3 | 1 | 0 | 1 | 1 |", "| **together** | 1 | 0 | 1 | 0 | 0 |"])

    def test_an_operator_is_in_one_group(self):
        named = [op for ops in onnx_node_tests.GROUPS.values() for op in ops.split()]
        self.assertEqual(len(named), len(set(named)))

    def test_tests_of_one_reason_share_a_line(self):
        tests = rows((case("test_a"), "refused"), (case("test_b"), "refused"), (case("test_c"), "passed"))
        self.assertEqual(onnx_node_tests.reasons(tests, "weft", "refused"), ["  why\n    test_a, test_b"])


if __name__ == "__main__":
    unittest.main()
