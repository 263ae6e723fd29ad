"""weft/weft.h is all that a program needs, and needs nothing but the standard library; the examples stay short.

Usage: user_header_test.py CXX ROOT
"""

import pathlib
import re
import subprocess
import sys
import unittest

COMPILER, ROOT = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
EXAMPLES = sorted((ROOT / "examples").glob("*.cpp"))
LINES = 60  # each example has fewer
LINES_OF_OWN_TASK = 120  # which shows five things that belong together


def preprocess(*options):
    command = [COMPILER, "-std=c++20", "-fopenmp", "-I", ROOT, "-x", "c++", *options, ROOT / "weft" / "weft.h"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class UserHeaderTest(unittest.TestCase):
    def test_it_includes_no_header_of_a_third_party(self):
        headers = preprocess("-M").replace("\\\n", " ").split()[1:]
        others = [h for h in headers if re.search(r"fmt|nlohmann|CLI|toml|dnnl|oneapi|cairo|png|jpeg|zlib|sqlite|gtest", h)]
        self.assertEqual(others, [])
        self.assertTrue(any(h.endswith("weft/run/run.h") for h in headers), headers)

    def test_it_defines_no_macros(self):
        names = re.findall(r"#define (\w+)", preprocess("-dM", "-E"))
        self.assertEqual([name for name in names if "weft" in name.lower()], [])


class ExamplesTest(unittest.TestCase):
    def test_there_are_seven(self):
        self.assertEqual(len(EXAMPLES), 7)

    def test_they_are_short(self):
        for example in EXAMPLES:
            limit = LINES_OF_OWN_TASK if example.stem == "own_task" else LINES
            self.assertLess(len(example.read_text(encoding="utf-8").splitlines()), limit, example.name)

    def test_they_include_weft_and_the_standard_library_alone(self):
        for example in EXAMPLES:
            includes = re.findall(r"^#include (\S+)", example.read_text(encoding="utf-8"), re.MULTILINE)
            self.assertEqual(includes[0], "<weft/weft.h>", example.name)
            for include in includes[1:]:
                self.assertRegex(include, r"^<[a-z_]+>$", example.name)


if __name__ == "__main__":
    unittest.main()
