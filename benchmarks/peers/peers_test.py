#!/usr/bin/env python3
"""Of benchmarks/peers/run, what can be tested without installing a peer."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
import contestants
import processes
import remote
import report
import samples
from adaptors import protocol


def run_of(items, seconds, cpu_s, first=0.5):
    return {"items": items, "batches": 1, "seconds": seconds, "cpu_s": cpu_s, "first_batch_s": first,
            "versions": {"it": "1.0"}, "settings": "as it is"}


def row_of(name, runs, workers=None):
    return {"job": "f32", "name": name, "workers": workers, "workers_text": f"{workers} threads", "runs": runs,
            "memory_bytes": 300 << 20, "look": {"mean": [0, 0, 0], "deviation": [1, 1, 1]}}


def results_of(rows, missing=()):
    return {
        "date": "2030-01-02", "command": "benchmarks/peers/run", "leat": "leat 1", "rounds": 3, "batch_size": 100,
        "images": 4800, "warm": 1200, "rows": rows, "missing": dict(missing), "tuning": [], "notes": ["a note"],
        "machine": {"cpus": 2, "cpu": "a CPU", "memory_gib": 24, "system": "Debian", "kernel": "6", "python": "3.11",
                    "load": "0.00"},
        "photos": {"count": 500, "classes": 20, "mean_bytes": 107_000, "mean_megapixels": 0.2},
    }


ours = row_of("leat", [run_of(1000, 1.0, 1.0), run_of(1000, 2.0, 2.0), run_of(1000, 4.0, 4.0)])
two = row_of("Peer", [run_of(1000, 2.0, 4.0), run_of(1000, 4.0, 8.0), run_of(1000, 8.0, 16.0)], 2)
none = row_of("Peer", [run_of(1000, 5.0, 2.0), run_of(1000, 5.0, 4.0), run_of(1000, 5.0, 8.0)], 0)


class Report(unittest.TestCase):
    def test_a_spread_is_the_median_with_the_lowest_and_highest(self):
        self.assertEqual(report.spread([3, 1, 2]), (2, 1, 3))
        self.assertEqual(report.spread_text([3000, 1000, 2000]), "2,000 (1,000..3,000)")

    def test_a_ratio_is_taken_within_each_round(self):
        # The rounds differ by a factor of four, and the ratio by nothing.
        self.assertEqual(report.ratios(ours, two, report.rate), [2, 2, 2])
        self.assertEqual(report.ratios(ours, two, report.rate_per_cpu), [4, 4, 4])

    def test_a_peer_is_taken_at_its_best_setting_for_the_column(self):
        self.assertIs(report.best([two, none], "Peer", report.rate), two)
        self.assertIs(report.best([two, none], "Peer", report.rate_per_cpu), none)
        self.assertEqual(report.ratio_table(results_of([two, ours, none]), "f32")[2:],
                         ["| leat / Peer | 2.00 (2.00..2.00) | 2.00 (2.00..2.00) |"])

    def test_rows_stand_in_the_order_of_their_cost(self):
        table = report.job_table(results_of([two, none, ours]), "f32")
        self.assertEqual([line.split(" |")[0] for line in table[2:]], ["| leat", "| Peer, 0 threads", "| Peer, 2 threads"])
        self.assertEqual(table[2], "| leat | 500 (250..1,000) | 500 (250..1,000) | 2 | 0.5 | 300 |")

    def test_the_page_names_what_was_not_measured_with_its_error(self):
        page = report.page(results_of([ours, two], [("Absent", "no wheel for this Python")]))
        self.assertIn("- Absent: no wheel for this Python", page)
        self.assertIn("500 photographs, 20 classes, mean size 107 KB", page)
        self.assertIn("- a note", page)
        self.assertNotIn("## 12 x 1,024", page)  # No run, no heading.

    def test_the_readme_keeps_what_stands_outside_the_marks(self):
        table = report.readme_table(results_of([two, none, ours]), "benchmarks/results/peers-2030-01-02.md")
        self.assertIn("| Peer | 250 | 250 | 0.5 | 300 |", table)
        text = f"before\n{report.begin_mark}\n\nold\n\n{report.end_mark}\nafter\n"
        new = report.between_marks(text, table)
        self.assertTrue(new.startswith(f"before\n{report.begin_mark}\n\n500 photographs"))
        self.assertTrue(new.endswith(f"\n\n{report.end_mark}\nafter\n"))
        self.assertNotIn("old", new)
        self.assertEqual(report.between_marks(new, table), new)
        with self.assertRaises(ValueError):
            report.between_marks("no marks", table)

    def test_the_readme_of_this_repository_has_the_marks(self):
        readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text()
        self.assertIn("new table", report.between_marks(readme, "new table"))


class Samples(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)

    def test_the_size_of_a_jpeg_is_that_of_its_frame(self):
        segment = b"\xff\xe0\x00\x04ab"
        frame = b"\xff\xc2\x00\x11\x08" + (300).to_bytes(2, "big") + (400).to_bytes(2, "big") + bytes(10)
        self.assertEqual(samples.jpeg_size(b"\xff\xd8" + segment + b"\xff" + frame), (400, 300))
        self.assertIsNone(samples.jpeg_size(b"\x89PNG0000000000"))
        self.assertIsNone(samples.jpeg_size(b"\xff\xd8" + segment))

    def test_shards_hold_every_photograph_once(self):
        for label in ("a", "b"):
            (self.folder / "photos" / label).mkdir(parents=True)
            for index in range(3):
                (self.folder / "photos" / label / f"{index}.jpg").write_bytes(f"{label}{index}".encode())
        files = samples.listed(self.folder / "photos")
        samples.write_shards(files, self.folder, 4)
        found = {}
        for shard in sorted(self.folder.glob("shard-*.tar")):
            with tarfile.open(shard) as archive:
                found |= {member.name: archive.extractfile(member).read() for member in archive}
        self.assertEqual(len(found), 12)
        self.assertEqual((found["00000004.jpg"], found["00000004.cls"]), (b"b1", b"1"))
        samples.write_repeated(files, self.folder / "repeated.tar", 8)
        with tarfile.open(self.folder / "repeated.tar") as archive:
            self.assertEqual([archive.extractfile(member).read() for member in archive][5:], [b"b2", b"a0", b"a1"])

    def test_both_files_of_tokens_hold_the_same(self):
        samples.write_tokens(self.folder, 5000)
        plain = (self.folder / "tokens.bin").read_bytes()
        self.assertEqual(len(plain), 10_000)
        with_header = (self.folder / "tokens-llmc.bin").read_bytes()
        self.assertEqual([int.from_bytes(with_header[at : at + 4], "little") for at in (0, 4, 8)], [20240520, 1, 5000])
        self.assertEqual(with_header[1024:], plain)


class Processes(unittest.TestCase):
    def python(self, program):
        return [sys.executable, "-c", program]

    def test_what_a_failed_run_said_is_in_its_error(self):
        with self.assertRaisesRegex(processes.Failed, "ended with 3: no such wheel"):
            processes.run(self.python("import sys; print('no such wheel', file=sys.stderr); sys.exit(3)"), json.loads)
        with self.assertRaisesRegex(processes.Failed, "cannot be read"):
            processes.run(self.python("print('not JSON')"), json.loads)

    def test_memory_is_that_of_the_whole_tree(self):
        held = 64 << 20
        child = f"held = b'x' * {held}; print('here', flush=True); input()"
        parent = (f"import subprocess, sys; held = b'x' * {held};"
                  f"child = subprocess.Popen([sys.executable, '-c', {child!r}]); child.wait()")
        tree = subprocess.Popen(self.python(parent), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        tree.stdout.readline()
        seen = processes.tree_bytes(tree.pid)
        tree.communicate(b"\n")
        self.assertGreater(seen, 2 * held)
        self.assertLess(seen, 3 * held)

    def test_pages_of_files_are_not_counted(self):
        text = "Rss: 9 kB\nPss_Anon:  2 kB\nPss_File:  5 kB\nPss_Shmem:  1 kB\nPrivate_Hugetlb:  4 kB\nShared_Hugetlb: 0 kB\n"
        self.assertEqual(processes.anonymous_bytes(text), 7 * 1024)

    def test_cpu_counts_children_that_still_run(self):
        burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
        before = protocol.tree_cpu_s()
        child = subprocess.Popen(self.python(burn), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        running = protocol.tree_cpu_s() - before
        child.communicate(b"\n")
        self.assertGreaterEqual(running, 0.3)
        self.assertGreaterEqual(protocol.tree_cpu_s() - before, running)


class Environments(unittest.TestCase):
    """Python without NumPy, whatever this machine has, and an environment that is made up."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        (self.folder / "without").mkdir()
        (self.folder / "without" / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
        self.environment = os.environ | {"PYTHONPATH": str(self.folder / "without"), "XDG_CACHE_HOME": str(self.folder)}

    def write_python(self, script):
        python = self.folder / "leat-peers" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\n" + script)
        python.chmod(0o755)
        return python

    def storage(self, *arguments):
        return subprocess.run([sys.executable, contestants.here.parent / "storage.py", *arguments], env=self.environment,
                              capture_output=True, text=True)

    def test_storage_goes_on_in_the_environment(self):
        self.write_python('[ "$1" = -c ] || echo "$@"')
        done = self.storage("FOLDER", "--rounds", "5")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "storage.py FOLDER --rounds 5")

    def test_storage_says_in_a_line_what_cannot_be_installed(self):
        python = self.write_python('echo "no network"; exit 1')
        done = self.storage("FOLDER")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[-1],
                         f"storage.py: torch and numpy cannot be installed: no network; {python} -m pip install torch numpy")
        self.assertNotIn("Traceback", done.stderr)

    def test_help_needs_nothing(self):
        done = self.storage("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--accelerator", done.stdout)
        self.assertFalse((self.folder / "leat-peers").exists())

    def test_without_numpy_run_says_in_a_line_that_it_does_not_look(self):
        loader = importlib.machinery.SourceFileLoader("peers_run", str(contestants.here.parent / "run"))
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("peers_run", loader))
        loader.exec_module(run)
        python = self.write_python("exit 1")
        leat = contestants.Leat(jobs=("f32",))
        setting = types.SimpleNamespace(python=python, leat="leat", photos=self.folder)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertIsNone(run.Measurement(None, setting, {}).leat_look({"of": leat, "job": "f32"}))
        self.assertEqual(said.getvalue().count("\n"), 1)
        self.assertIn(f"{python} -m pip install numpy", said.getvalue())


class Remote(unittest.TestCase):
    def test_what_the_store_counts_is_read_of_the_bucket_alone(self):
        text = ("# TYPE SeaweedFS_s3_request_total counter\n"
                'SeaweedFS_s3_request_total{bucket="leat",code="206",type="GET"} 12\n'
                'SeaweedFS_s3_request_total{bucket="leat",code="200",type="LIST"} 1\n'
                'SeaweedFS_s3_request_total{bucket="other",code="200",type="GET"} 7\n'
                'SeaweedFS_s3_bucket_traffic_sent_bytes_total{bucket="leat"} 1.5e+06\n')
        self.assertEqual(remote.store_counts(text), (13, 1_500_000))
        self.assertEqual(remote.store_counts(""), (0, 0))

    def test_a_shard_is_as_large_and_its_samples_where_is_reckoned(self):
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            with tarfile.open(file.name, "w", format=tarfile.USTAR_FORMAT) as shard:
                for i in range(3):
                    member = tarfile.TarInfo(f"{i}.bin")
                    member.size = remote.sample_bytes
                    shard.addfile(member, io.BytesIO(bytes([i]) * remote.sample_bytes))
            self.assertEqual(os.path.getsize(file.name), remote.shard_bytes(3))
            found = remote.litdata_sample((file.name, 512 + 2 * remote.tar_bytes))["x"]
            self.assertEqual(found, b"\x02" * remote.sample_bytes)

    def test_a_ratio_is_taken_within_each_round_and_columns_are_medians(self):
        def runs(*cpu_s):
            return [{"samples": 1000, "cpu_s": each, "seconds": 2.0, "requests": 5, "sent": 2 << 20} for each in cpu_s]

        lines = remote.table({"leat, exact": runs(1, 2, 4), "Peer, 2 workers": runs(2, 4, 8)})
        self.assertTrue(lines[2].endswith("| 500 (500 to 500) | 5 | 2 | 1.00 |"), lines[2])
        self.assertTrue(lines[3].startswith("| Peer, 2 workers | 40.14 (20.07 to 80.28) |"), lines[3])
        self.assertTrue(lines[3].endswith("| 0.50 |"), lines[3])

    def test_ports_are_free_and_differ(self):
        ports = remote.free_ports(5)
        self.assertEqual(len(set(ports)), 5)


class Contestants(unittest.TestCase):
    def test_leat_is_read_in_the_words_of_the_others(self):
        said = {"samples": 500, "planned": 500, "batches": 5, "quarantined": 0, "seconds": 0.5, "cpu_s": 0.9,
                "first_batch_ms": 80.0, "reader": {"backend": "io_uring", "direct": "off", "huge_pages": "on"}}
        images = contestants.Leat(jobs=("f32", "u8")).measurement(json.dumps(said))
        self.assertEqual((images["items"], images["first_batch_s"]), (500, 0.08))
        self.assertEqual(contestants.Leat(jobs=("tokens",)).measurement(json.dumps(said))["items"], 5)
        with self.assertRaises(ValueError):
            contestants.Leat(jobs=("f32",)).measurement(json.dumps({**said, "quarantined": 1}))

    def test_every_adaptor_is_there_and_every_job_has_leat_in_it(self):
        for each in contestants.all_of_them:
            if each.adaptor:
                self.assertTrue((contestants.here / each.adaptor).exists(), each.adaptor)
        for job in contestants.jobs:
            self.assertTrue(any(report.is_ours(each.name) and job in each.jobs for each in contestants.all_of_them), job)

    def test_crops_keep_to_their_area_and_aspect(self):
        import random
        drawn = random.Random(7)
        for _ in range(1000):
            left, top, width, height = protocol.random_crop(500, 375, drawn)
            self.assertTrue(0 <= left <= 500 - width and 0 <= top <= 375 - height)
            self.assertTrue(0.075 < width * height / (500 * 375) <= 1 and 0.73 < width / height < 1.36)


if __name__ == "__main__":
    unittest.main()
