#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions and simulated cache misses a packet, by stage, against budget.json: what costs more fails here and not in somebody's network.

The shipped stages over recorded flows under callgrind (`cachewire-bench flows --cachesim-only`), whose simulated caches have fixed
sizes, so that the figures are the same on every machine. They depend on the compiler: with another one than the budget's the test says
what it measured and skips. `gate_test.py --update` writes the budget anew; budget.json says when that is honest.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import harness  # noqa: E402

BENCH = os.environ.get("CACHEWIRE_BENCH", os.path.join(harness.ROOT, "build", "bench", "cachewire-bench"))
BUDGET = os.path.join(HERE, "budget.json")
FIGURES = ("instructions", "l1d_misses", "ll_misses")


def measure():
    """(compiler, {variant: {stage: {figure: a packet}}}), or why there is nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "flows.json")
        # The environment lies above the stack, so its length says which lines of the cache the stack shares with what else.
        fixed = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run([BENCH, "flows", "--cachesim-only", "--json", path], env=fixed, capture_output=True, text=True, timeout=590,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(f"{BENCH} flows --cachesim-only ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        print(done.stdout)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    figures = {v["name"]: {s["stage"]: {key: s[key] for key in FIGURES} for s in v.get("stages", [])} for v in document["variants"]}
    return document["compiler"], figures


def judge(figures, budget):
    """What is over its budget, one line each; what the budget doesn't know is over it, and so is what was not measured."""
    faults = []
    for variant in sorted(set(figures) | set(budget["variants"])):
        measured, allowed = figures.get(variant, {}), budget["variants"].get(variant, {})
        for stage in sorted(set(measured) | set(allowed)):
            if stage not in measured or stage not in allowed:
                faults.append(f"{variant}: {stage}: {'not measured' if stage in allowed else 'has no budget'}")
                continue
            for figure in FIGURES:
                limit = allowed[stage][figure] * (1 + budget["tolerance_percent"] / 100) + budget["tolerance"][figure]
                if measured[stage][figure] > limit:
                    faults.append(f"{variant}: {stage}: {measured[stage][figure]:.2f} {figure} a packet; the budget is "
                                  f"{allowed[stage][figure]:.2f}, with tolerance {limit:.2f}")
    return faults


def read_budget():
    with open(BUDGET, encoding="utf-8") as file:
        return json.load(file)


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("valgrind"):
            raise unittest.SkipTest("valgrind is not installed")
        cls.budget = read_budget()
        cls.compiler, cls.figures = measure()

    def test_no_stage_costs_more_than_its_budget(self):
        if self.compiler != self.budget["compiler"]:
            self.skipTest(f"the budget is for {self.budget['compiler']}, this is {self.compiler}; measured above")
        faults = judge(self.figures, self.budget)
        self.assertEqual(faults, [], "\n".join(["over budget; budget.json says what to do:", *faults]))

    def test_a_stage_that_costs_more_is_named(self):
        """The judgement itself, on what was just measured: every single figure of it, raised over its tolerance, is found."""
        exact = {"tolerance_percent": 2, "tolerance": dict.fromkeys(FIGURES, 0.1), "variants": self.figures}
        self.assertEqual(judge(self.figures, exact), [])
        tried = 0
        for variant, stages in self.figures.items():
            for stage, costs in stages.items():
                for figure in FIGURES:
                    worse = json.loads(json.dumps(self.figures))
                    worse[variant][stage][figure] = costs[figure] * 1.03 + 0.2
                    faults = judge(worse, exact)
                    self.assertEqual(len(faults), 1, faults)
                    self.assertTrue(faults[0].startswith(f"{variant}: {stage}: "), faults)
                    self.assertIn(figure, faults[0])
                    tried += 1
        self.assertGreater(tried, 50)

    def test_what_the_budget_does_not_know_is_over_it(self):
        budget = {"tolerance_percent": 2, "tolerance": dict.fromkeys(FIGURES, 0.1), "variants": json.loads(json.dumps(self.figures))}
        variant = next(iter(self.figures))
        del budget["variants"][variant]["Session"]
        self.assertEqual(judge(self.figures, budget), [f"{variant}: Session: has no budget"])
        self.assertEqual(judge({v: s for v, s in self.figures.items() if v != variant}, {**budget, "variants": self.figures}),
                         [f"{variant}: {stage}: not measured" for stage in sorted(self.figures[variant])])


def update():
    """Writes what is measured now into the budget. Everything else in the file stays."""
    budget = read_budget()
    budget["compiler"], figures = measure()
    budget["variants"] = {v: {s: {f: round(n, 2) for f, n in costs.items()} for s, costs in stages.items()} for v, stages in figures.items()}
    lines = json.dumps(budget, indent=1)
    with open(BUDGET, "w", encoding="utf-8") as file:
        file.write(lines + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        harness.main()
