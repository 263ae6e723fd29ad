"""The include checker finds what it is for: each test writes a small tree with one mistake."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
spec = importlib.util.spec_from_file_location("check_layers", SCRIPT)
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("docs/layout.md", "```arrows\n" + "\n".join(check_layers.ARROWS) + "\n```\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def check(self):
        done = subprocess.run([sys.executable, SCRIPT, self.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_arrows_that_point_down_pass(self):
        self.write("weft/train/fit.cpp", '#include "weft/data/loader.h"\n#include "weft/base/error.h"\n#include <vector>\n')
        self.write("weft/cpu/onednn/conv.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n")
        self.assertEqual(self.check(), (0, "2 files, 0 violations, 0 circles\n"))

    def test_an_arrow_that_points_up_is_found_with_its_line(self):
        self.write("weft/tensor/a.h", '// tensor\n#include "weft/graph/graph.h"\n')
        status, output = self.check()
        self.assertEqual(status, 1)
        self.assertIn("weft/tensor/a.h:2: tensor may not include weft/graph/graph.h", output)

    def test_passes_and_plan_never_see_each_other(self):
        self.write("weft/passes/a.cpp", '#include "weft/plan/plan.h"\n')
        self.write("weft/plan/a.cpp", '#include "weft/passes/pipeline.h"\n')
        self.assertIn("2 files, 2 violations", self.check()[1])

    def test_data_sees_no_graph(self):
        self.write("weft/data/a.cpp", '#include "weft/graph/graph.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_onednn_stays_in_its_folder(self):
        self.write("weft/runtime/executor.cpp", "#include <dnnl.hpp>\n")
        self.assertIn("<dnnl.hpp> may be included under weft/cpu/onednn only", self.check()[1])

    def test_paths_begin_at_the_root(self):
        self.write("weft/base/a.cpp", '#include "error.h"\n')
        self.assertIn("by its path from the root", self.check()[1])

    def test_the_header_for_users_stands_above_all(self):
        self.write("weft/weft.h", '#include "weft/cli/run.h"\n#include "weft/base/error.h"\n')
        self.assertEqual(self.check(), (0, "1 files, 0 violations, 0 circles\n"))

    def test_no_folder_includes_the_header_for_users(self):
        self.write("weft/cli/run.cpp", '#include "weft/weft.h"\n')
        self.assertIn("cli may not include weft/weft.h", self.check()[1])

    def test_an_unknown_folder_is_an_error(self):
        self.write("weft/misc/a.cpp", "\n")
        self.assertIn("'misc' is not in the table", self.check()[1])

    def test_a_page_that_shows_other_arrows_is_an_error(self):
        self.write("weft/base/a.cpp", "\n")
        self.write("docs/layout.md", "```arrows\nbase <- graph\n```\n")
        self.assertIn("differs from ARROWS", self.check()[1])

    def test_subfolders_that_include_each_other_are_a_circle(self):
        self.write("weft/data/dataset.h", '#include "weft/data/formats/csv.h"\n')
        self.write("weft/data/formats/csv.h", '#include "weft/data/dataset.h"\n')
        status, output = self.check()
        self.assertEqual(status, 1)
        self.assertIn("weft/data -> weft/data/formats (weft/data/dataset.h:1)", output)
        self.assertIn("2 files, 0 violations, 1 circles", output)

    def test_a_circle_over_three_subfolders_is_found(self):
        for folder, target in (("a", "b"), ("b", "c"), ("c", "a")):
            self.write(f"weft/comm/{folder}/x.h", f'#include "weft/comm/{target}/x.h"\n')
        self.assertIn("1 circles", self.check()[1])

    def test_subfolders_that_stand_upon_each_other_are_none(self):
        self.write("weft/comm/runner.h", '#include "weft/comm/schedules/ring.h"\n')
        self.write("weft/comm/schedules/ring.h", "\n")
        self.assertEqual(self.check(), (0, "2 files, 0 violations, 0 circles\n"))

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
