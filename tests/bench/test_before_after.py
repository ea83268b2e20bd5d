"""What run.sh --before says of two trees: by programs that print what a test wants."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import before_after
import busy_machine
from before_after import Both, Side

COLUMNS = "problem islands contacts its whole/ms min/ms median/ms on/off par./ms speed-up by-sums"


def program(folder, text):
    """A solve_benchmark below a build folder."""
    path = folder / "bin" / "solve_benchmark"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def printing(one_ms, several_ms, its=9, bits=None):
    """The text of a program that has one problem's figures."""
    columns, values = COLUMNS, f"pile 1 3 {its} {one_ms} {one_ms} {one_ms} 1 {several_ms} 1.5 1.4"
    if bits is not None:
        columns, values = f"{columns} bits", f"{values} {bits}"
    return f'echo "{columns}"; echo "{values}"'


class ArithmeticTest(unittest.TestCase):
    def test_the_ratio_is_the_median_of_those_of_rounds(self):
        rounds = [(200.0, 100.0), (400.0, 400.0), (900.0, 300.0)]
        self.assertEqual(before_after.times_and_ratio(rounds),
                         ["400", "300", "2.000", "1.000-3.000"])

    def test_short_times_have_digits_after_the_point(self):
        self.assertEqual(before_after.times_and_ratio([(7.5, 5.0)])[:2], ["7.50", "5.00"])

    def test_every_second_round_begins_with_after(self):
        both, order = Both(Side(pathlib.Path(), "before"), Side(pathlib.Path(), "after")), []

        def measure(side):
            order.append(side.name)
            return side.name

        self.assertEqual(both.in_turn(3, measure), [("before", "after")] * 3)
        self.assertEqual(order, ["before", "after", "after", "before", "before", "after"])

    def test_a_run_has_pairs_for_a_second_but_not_less_than_three(self):
        def pairs(ms):
            return before_after.number_of_pairs({"whole/ms": ms, "min/ms": ms})

        self.assertEqual([pairs("10.0"), pairs("500.0"), pairs("0.000")], [25, 3, 999])

    def test_other_iterations_and_bits_are_told(self):
        nine, ten = {"its": "9"}, {"its": "10"}
        self.assertEqual(before_after.iterations(nine, nine), "9")
        self.assertEqual(before_after.iterations(nine, ten), "DIFFERENT: 9, 10")
        one, other, broken = ({"bits": bits} for bits in ("123", "124", "threads-differ"))
        self.assertEqual(before_after.bits(one, one), "same")
        self.assertEqual(before_after.bits(one, other), "DIFFERENT")
        self.assertEqual(before_after.bits({}, one), "-")
        self.assertEqual(before_after.bits({}, broken), "DIFFERENT by threads")


class TablesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.printed = io.StringIO()
        self.enterContext(contextlib.redirect_stdout(self.printed))

    def both(self, before, after):
        for name, text in (("before", before), ("after", after)):
            program(self.folder / name, text)
        return Both(*(Side(self.folder / name, name) for name in ("before", "after")))

    def test_a_problem_has_a_row_for_one_thread_and_one_for_several(self):
        both = self.both(printing(2.0, 1.5, bits=7), printing(1.0, 0.5, bits=7))
        table = before_after.solves(both, ["pile"], threads=4, rounds=2)
        self.assertEqual(table.rows, [
            ["pile", 1, "2000", "1000", "2.000", "2.000-2.000", "9", "same"],
            ["pile", 4, "1500", "500", "3.000", "3.000-3.000", "9", "same"],
        ])
        table = before_after.solves(both, ["pile"], threads=1, rounds=2)
        self.assertEqual([row[1] for row in table.rows], [1])

    def test_a_revision_without_hashes_leaves_bits_unknown(self):
        both = self.both(printing(2.0, 1.5, its=8), printing(1.0, 0.5, bits=7))
        (row, _) = before_after.solves(both, ["pile"], threads=2, rounds=1).rows
        self.assertEqual(row[-2:], ["DIFFERENT: 8, 9", "-"])

    def test_a_short_problem_is_measured_by_processor_time(self):
        busy = 'case $1 in --solves) i=0; while [ $i -lt $2 ]; do i=$((i + 1)); done; exit;; esac;'
        both = self.both(busy + printing(0.003, 0.003), busy + printing(0.003, 0.003))
        (row,) = before_after.solves(both, ["pile"], threads=2, rounds=1).rows
        self.assertGreater(float(row[2]), 0)
        self.assertEqual(row[:2], ["pile", 1])

    def test_what_a_program_refuses_is_left_out_with_its_reason(self):
        refusing = 'case $5 in bad) echo "there is no bad" >&2; exit 1;; '
        refusing += f'odd) echo "{COLUMNS}"; echo "odd: contacts"; exit;; none) exit;; esac;'
        both = self.both(refusing + printing(2.0, 1.5), printing(1.0, 0.5))
        table = before_after.solves(both, ["bad", "odd", "none", "pile"], threads=2, rounds=1)
        self.assertEqual(len(table.rows), 2)
        self.assertIn("left out, bad: before: there is no bad\n", self.printed.getvalue())
        self.assertIn("left out, odd: before: odd: contacts\n", self.printed.getvalue())
        self.assertIn("left out, none: before: no figures\n", self.printed.getvalue())

    def test_speed_ups_on_a_busy_machine_are_of_both(self):
        both = self.both(printing(2.0, 1.5), printing(1.0, 0.5).replace("by-sums", "other"))
        values = before_after.speed_ups(both, "pile", 2, prefix=["env"])
        self.assertEqual(values, ["1.50", "1.50", "1.40", "-"])

    def test_busy_loops_are_not_started_with_real_time_priority(self):
        both = self.both(printing(2.0, 1.5), printing(1.0, 0.5))
        with mock.patch.object(os, "sched_getscheduler", return_value=os.SCHED_FIFO), \
                mock.patch.object(busy_machine, "processor_quota",
                                  lambda cores: contextlib.nullcontext([])):
            table = before_after.busy(both, ["pile"], 2)
        self.assertNotIn("a busy loop on one core", [row[0] for row in table.rows])
        self.assertIn("left out, a busy loop on each core: ", self.printed.getvalue())

    def test_both_programs_read_the_same_files(self):
        text = 'test "$(cat $SAP_PROBLEMS_DIR/pile.json)" = mine || exit 1;' + printing(1.0, 1.0)
        both = self.both(text, text)
        problem = self.folder / "pile.json"
        problem.write_text("mine")
        with mock.patch.dict(os.environ), before_after.read_by_both({"pile": problem}):
            self.assertEqual(len(before_after.solves(both, ["pile"], 2, 1).rows), 2)

    def test_sources_of_the_replay_that_differ_are_named(self):
        for name, text in (("a", "1 us"), ("b", "0.2 us")):
            path = self.folder / name / "tests" / "bench" / "task_graph_benchmark.cc"
            path.parent.mkdir(parents=True)
            path.write_text(text)
        trees = [self.folder / name for name in ("a", "b")]
        self.assertEqual(before_after.different_replay(*trees), ["task_graph_benchmark.cc"])


class ArgumentsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ))

    def parse(self, *arguments):
        trees = ["--trees", "a", "b", "--out", "c"]
        return before_after.parse([*trees, *map(str, arguments)])

    def refused(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as told, self.assertRaises(SystemExit):
            self.parse(*arguments)
        return told.getvalue()

    def test_without_names_the_usual_problems_are_those_that_are_there(self):
        os.environ.pop("SAP_PROBLEMS_DIR", None)
        self.assertIn("heaps_300x3_t1p50", self.parse().names)

    def test_a_folder_stands_for_all_of_its_problems(self):
        for name in ("b.json", "a.json.gz"):
            (self.folder / name).touch()
        self.assertEqual(self.parse("--problems", self.folder).names, ["a", "b"])

    def test_what_is_not_there_is_refused_by_name(self):
        self.assertIn("there is no problem 'nowhere'", self.refused("nowhere"))
        self.assertIn("there are no problems in", self.refused("--problems", self.folder))
        self.assertIn("at least 1", self.refused("--rounds", 0))


class RevisionTest(unittest.TestCase):
    """run.sh in a repository of one commit that has nothing but that script."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        script = self.folder / "tests" / "bench" / "run.sh"
        script.parent.mkdir(parents=True)
        shutil.copy(HERE / "run.sh", script)
        for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "one"]):
            identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
            subprocess.run(["git", *identity, *command], cwd=self.folder, check=True)

    def refused(self, *arguments):
        done = subprocess.run(
            [self.folder / "tests" / "bench" / "run.sh", "--before", *arguments],
            check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_a_revision_that_cannot_be_measured_is_refused_first(self):
        self.assertEqual(self.refused("1234567"), "run.sh: there is no revision '1234567'\n")
        self.assertEqual(self.refused("HEAD"),
                         "run.sh: revision 'HEAD' has no tests/bench/solve_benchmark.cc\n")
        self.assertEqual(self.refused(), "run.sh: --before needs a revision\n")


if __name__ == "__main__":
    unittest.main()
