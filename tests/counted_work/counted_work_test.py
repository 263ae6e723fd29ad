#!/usr/bin/env python3
"""The comparison of counted work sees what got worse, better or new, and bears what may differ between machines."""

import unittest

from counted_work import compare, facts_of, parse, render

KEPT = {"lenet5, input 1,28,28, batch 64": {"nodes": 30, "reorders": 2, "arena_bytes": 1000, "conv2d by onednn:jit": 4}}


def changed(**facts):
    step, before = next(iter(KEPT.items()))
    return compare(KEPT, {step: {**before, **{name.replace("_by_", " by "): value for name, value in facts.items()}}})


class CountedWork(unittest.TestCase):
    def test_equal_work_is_no_difference(self):
        self.assertEqual(changed(), [])

    def test_more_is_worse_and_less_is_better(self):
        self.assertIn("reorders 2 -> 3 (+1, +50.0 %): worse", changed(reorders=3)[0])
        self.assertIn("nodes 30 -> 27 (-3, -10.0 %): better", changed(nodes=27)[0])

    def test_another_kernel_is_named_on_both_sides(self):
        step, facts = next(iter(KEPT.items()))
        now = {**facts, "conv2d by onednn:jit": 3, "conv2d by reference": 1}
        self.assertEqual(compare(KEPT, {step: now}), [f"{step}: conv2d by onednn:jit 4 -> 3 (-1, -25.0 %)",
                                                      f"{step}: conv2d by reference 0 -> 1 (+1)"])

    def test_the_arena_may_differ_as_caches_do(self):
        self.assertEqual(changed(arena_bytes=1019), [])
        self.assertEqual(len(changed(arena_bytes=1021)), 1)

    def test_steps_that_come_and_go_are_named(self):
        self.assertEqual(compare(KEPT, {"new": {}}), ["lenet5, input 1,28,28, batch 64: is no step any more", "new: is new"])

    def test_a_file_is_read_as_it_was_written(self):
        self.assertEqual(parse(render("AVX2-f32", "2.6.3", "1024K", KEPT)), ("2.6.3", "1024K", KEPT))

    def test_with_another_cache_only_what_it_does_not_change_is_compared(self):
        step, facts = next(iter(KEPT.items()))
        now = {step: {**facts, "workspace_bytes": 10**9, "flops": facts.get("flops", 0) + 1}}
        self.assertEqual([line.split(": ")[1].split()[0] for line in compare(KEPT, now, {"flops"})], ["flops"])

    def test_kernels_are_facts(self):
        work = {"nodes": 2, "kernels": [{"op": "relu", "kernel": "native:elementwise", "nodes": 2}],
                "kernels_when_bound": [{"op": "cast", "kernel": "native:cast", "nodes": 1}]}
        self.assertEqual(facts_of(work),
                         {"nodes": 2, "relu by native:elementwise": 2, "cast by native:cast when bound": 1})


if __name__ == "__main__":
    unittest.main()
