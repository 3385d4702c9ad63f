"""What a user of pyleat relies on, with the standard library and NumPy alone: scripts/wheel runs it beside an installed wheel."""

import ast
import asyncio
import ctypes
import gc
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import types
import unittest
import unittest.mock
import zlib

import numpy

import pyleat as leat

ROWS = 100


def write_bmp(path, colour, width=16, height=12):
    line = bytes(colour[::-1]) * width
    line += b"\0" * (-len(line) % 4)
    pixels = line * height
    head = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    head += struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 2835, 2835, 0, 0)
    path.write_bytes(head + pixels)


class Made(unittest.TestCase):
    """Rows 0 to 99, each filled with its number; ten pictures of two classes; lines of JSON."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        at = pathlib.Path(cls.folder.name)
        numpy.save(at / "rows.npy", numpy.repeat(numpy.arange(ROWS, dtype=numpy.float32)[:, None], 8, axis=1))
        for number in range(10):
            folder = at / "pictures" / ("red" if number % 2 == 0 else "blue")
            folder.mkdir(parents=True, exist_ok=True)
            write_bmp(folder / f"{number}.bmp", (255, 0, 0) if number % 2 == 0 else (0, 0, 255))
        with (at / "lines.jsonl").open("w") as lines:
            for number in range(20):
                lines.write(json.dumps({"txt": "é" * number, "cls": number}) + "\n")
        cls.at = at

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def rows(self, **options):
        return leat.Loader(self.at / "rows.npy", leat.Array("npy"), **{"batch_size": 8, **options})


class Epochs(Made):
    def test_an_epoch_has_every_row_once(self):
        with self.rows(seed=3, epochs=2) as loader:
            self.assertEqual((len(loader), loader.samples), (13, ROWS))
            for epoch in range(2):
                seen = []
                for batch in loader:
                    self.assertEqual(batch.epoch, epoch)
                    array = numpy.from_dlpack(batch["npy"])
                    self.assertEqual(array[:, 0].tolist(), [float(each) for each in batch.ids])
                    seen += batch.ids
                self.assertEqual(sorted(seen), list(range(ROWS)))
            self.assertTrue(loader.finished)
            self.assertEqual(list(loader), [])

    def test_what_a_break_leaves_is_dropped(self):
        with self.rows() as loader:
            for batch in loader:
                break
            epochs = {batch.epoch for batch in loader}
            self.assertEqual(epochs, {1})

    def test_next_and_for_go_together(self):
        with self.rows(shuffle=False) as loader:
            self.assertEqual(loader.next().index, 0)
            self.assertEqual(loader.next().index, 1)
            self.assertEqual([batch.index for batch in loader][0], 0)  # of the next epoch

    def test_async_for_gives_the_same_batches(self):
        async def ids(loader):
            return [each async for batch in loader for each in batch.ids]

        with self.rows(seed=5) as one, self.rows(seed=5) as other:
            self.assertEqual(asyncio.run(ids(one)), [each for batch in other for each in batch.ids])

    def test_two_loaders_run_in_one_event_loop(self):
        async def rows(loader):
            count = 0
            async for batch in loader:
                count += batch.valid_rows
            return count

        async def both(one, other):
            return await asyncio.gather(rows(one), rows(other))

        with self.rows() as one, self.rows(batch_size=3) as other:
            self.assertEqual(asyncio.run(both(one, other)), [ROWS, ROWS])

    def test_a_cancelled_task_loses_no_batch(self):
        async def cancelled(loader):
            steps = aiter(loader)
            seen = []
            while True:
                try:
                    seen.append((await asyncio.wait_for(anext(steps), 0)).index)
                except asyncio.TimeoutError:
                    if len(seen) >= 3:
                        return seen
                    seen.append((await anext(steps)).index)

        with self.rows(shuffle=False) as loader:
            seen = asyncio.run(cancelled(loader))
            while (batch := loader.next()) is not None:
                seen.append(batch.index)
            self.assertEqual(seen, list(range(13)))

    def test_two_loops_over_one_loader_are_a_usage_error(self):
        with self.rows() as loader:
            with self.assertRaisesRegex(leat.UsageError, "another loop"):
                list(zip(loader, loader))
            self.assertEqual(sum(batch.valid_rows for batch in loader), ROWS)

    def test_two_tasks_that_await_one_loader_are_a_usage_error_and_lose_nothing(self):
        async def both(loader):
            steps = aiter(loader)
            tasks = [asyncio.ensure_future(anext(steps)) for _ in range(3)]
            done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
            with self.assertRaisesRegex(leat.UsageError, "a task awaits"):
                # A second loop, of no task, while one awaits.
                waiting = asyncio.ensure_future(anext(steps))
                while not loader._awaited and not waiting.done():
                    await asyncio.sleep(0)
                if waiting.done():
                    done.append(waiting.result())
                    loader._refuse_while_awaited()
                    raise leat.UsageError("a task awaits (it was too quick to see)")
                try:
                    loader.next()
                finally:
                    done.append(await waiting)
            rest = [each async for each in _rest(steps)]
            return [each for each in done if not isinstance(each, Exception)] + rest, done

        async def _rest(steps):
            async for each in steps:
                yield each

        with self.rows(shuffle=False) as loader:
            batches, done = asyncio.run(both(loader))
            self.assertEqual([each.index for each in batches], list(range(13)))
            for each in done:
                if isinstance(each, Exception):
                    self.assertRegex(str(each), "a task awaits")

    def test_any_batch_at_any_time(self):
        with self.rows(seed=3, digests=True) as loader:
            self.assertEqual(loader.rows, ROWS)
            later = loader.batch_at(1, 5)
            batches = [(batch.ids, batch.digest) for _ in range(2) for batch in loader]
            self.assertEqual((later.ids, later.digest), batches[13 + 5])
            self.assertEqual((len(later.row_digests), later.names), (8, [f"{self.at}/rows.npy[{each}]" for each in later.ids]))
            with self.assertRaisesRegex(leat.UsageError, "13"):
                loader.batch_at(0, 13)

    def test_a_timeline_has_the_loop_s_own_parts(self):
        path = self.at / "timeline.json"
        with self.rows(timeline_bytes=1 << 20) as loader:
            for batch in loader:
                with loader.mark("forward"):
                    del batch
            loader.write_timeline(path)
            self.assertIsInstance(loader.reads_under_way(), list)
        events = json.loads(path.read_text())["traceEvents"]
        self.assertEqual(sum(each["name"] == "forward" and each["ph"] == "X" for each in events), 13)
        with self.rows() as loader, self.assertRaisesRegex(leat.UsageError, "timeline_bytes="):
            loader.write_timeline(path)

    def test_a_run_leaves_receipts_of_its_rows(self):
        with self.rows(receipts=self.at / "receipts", digests=True, names=True) as loader:
            self.assertEqual(sum(batch.valid_rows for batch in loader), ROWS)
        self.assertGreaterEqual((self.at / "receipts").stat().st_size, 16 * ROWS)

    def test_a_run_leaves_a_record_of_its_reads(self):
        with self.rows(record=self.at / "reads") as loader:
            self.assertEqual(sum(batch.valid_rows for batch in loader), ROWS)
        self.assertGreaterEqual((self.at / "reads").stat().st_size, 24)

    def test_placement_is_said(self):
        with self.rows(numa="off") as loader:
            self.assertEqual(loader.stats()["placement"], "off")
        with self.assertRaisesRegex(leat.UsageError, "no NUMA node 4000"):
            self.rows(numa=4000)

    def test_parts_come_by_their_shares(self):
        whole = leat.open(self.at / "rows.npy")
        parts = leat.concat([whole.slice(0, 10), whole.slice(10, 90)])
        with leat.Loader(parts, leat.Array("npy"), batch_size=10, order=leat.mixed_by([3, 1], 40)) as loader:
            seen = [sum(each < 10 for each in batch.ids) for batch in loader]
        self.assertEqual((len(seen), sum(seen)), (4, 30))
        order = leat.node_local(leat.shuffled(), 2)
        self.assertEqual(repr(order), "node_local(shuffled(), 2)")
        with self.rows(order=order) as loader:
            self.assertEqual(sorted(each for batch in loader for each in batch.ids), list(range(ROWS)))

    def test_a_dict_of_arrays(self):
        with self.rows(to="numpy", shuffle=False) as loader:
            first = next(iter(loader))
            self.assertEqual(first["npy"][3].tolist(), [3.0] * 8)


class Pages(Made):
    def test_the_lines_of_the_readme_run(self):
        readme = pathlib.Path(__file__).resolve().parents[2] / "README.md"
        lines = readme.read_text().split("```python\n")[1].split("```")[0]
        (self.at / "build").mkdir()
        (self.at / "build" / "photos").symlink_to(self.at / "pictures")
        before = os.getcwd()
        os.chdir(self.at)
        try:
            names = {}
            exec(lines, names)
        finally:
            os.chdir(before)
        self.assertEqual(names["pixels"].shape, (10, 3, 224, 224))
        self.assertEqual(names["pixels"].dtype, numpy.float32)
        self.assertEqual(sorted(names["classes"]), [0] * 5 + [1] * 5)


    def test_the_example_programs_run(self):
        programs = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
        numpy.arange(60_000).astype("<u2").tofile(self.at / "tokens.bin")
        for name, source, needs, said in (("tokens.py", "tokens.bin", "numpy", "token "),
                                          ("asyncio_two_loaders.py", "pictures", "numpy", "val: 2 pictures"),
                                          ("train_jax.py", "many", "jax", "epoch 2: "),
                                          ("train_torch.py", "many", "torch", "epoch 2 batch 2: ")):
            with self.subTest(name):
                if importlib.util.find_spec(needs) is None:
                    self.skipTest(f"{needs} is not installed")
                if source == "many" and not (self.at / "many").exists():
                    for number in range(64):
                        (self.at / "many" / str(number % 2)).mkdir(parents=True, exist_ok=True)
                        write_bmp(self.at / "many" / str(number % 2) / f"{number}.bmp", (number, 0, 0), 64, 64)
                ended = subprocess.run([sys.executable, programs / name, self.at / source], capture_output=True, text=True,
                                       cwd=self.at, timeout=120)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertIn(said, ended.stdout)


class Values(Made):
    def test_pictures_and_their_classes(self):
        data = leat.open(self.at / "pictures")
        self.assertEqual((len(data), data.classes), (10, ["blue", "red"]))
        with leat.Loader(data, leat.Image().resize(12, 16).as_("u8"), leat.Label(), batch_size=10, shuffle=False) as loader:
            batch = next(iter(loader))
        pixels, classes = batch["jpg"].numpy(), batch["cls"].numpy()
        self.assertEqual((pixels.shape, pixels.dtype, classes.dtype), ((10, 3, 12, 16), numpy.uint8, numpy.int64))
        for picture, number in zip(pixels, classes):
            colour = [255, 0, 0] if number == 1 else [0, 0, 255]
            self.assertEqual(picture.reshape(3, -1).T.tolist(), [colour] * (12 * 16))

    def test_steps_of_a_picture_are_those_of_cpp(self):
        field = leat.Image().random_resized_crop(8, scale=(0.5, 1)).random_flip().augment("hue(0.1)")
        field = field.normalize(leat.IMAGENET).as_("nhwc").as_("f16")
        with leat.Loader(self.at / "pictures", field, batch_size=4) as loader:
            batch = next(iter(loader))
        self.assertEqual((batch["jpg"].shape, batch["jpg"].dtype), ((4, 8, 8, 3), "f16"))

    def test_one_number_is_of_all_channels(self):
        with leat.Loader(self.at / "pictures", leat.Image("jpg").resize(8, 8).normalize(((0.5,), (0.25,))), batch_size=10) as loader:
            self.assertEqual(set(next(iter(loader))["jpg"].numpy().ravel().tolist()), {-2.0, 2.0})
        with self.assertRaisesRegex(ValueError, "one or three numbers of mean and deviation each, and not 2"):
            leat.Image().normalize(((0.5, 0.5), (0.25,)))

    def test_texts_are_their_bytes(self):
        with leat.Loader(self.at / "lines.jsonl", leat.Text(), leat.Label(), batch_size=20, shuffle=False) as loader:
            batch = next(iter(loader))
        self.assertEqual(batch.bytes("txt", 7).decode(), "é" * 7)
        self.assertEqual(numpy.diff(batch["txt.offsets"].numpy()).tolist(), [2 * each for each in range(20)])

    def test_a_column_of_ones_own_orders_the_samples(self):
        data = leat.open(self.at / "rows.npy").with_column("cls", [each // 50 for each in range(ROWS)])
        with leat.Loader(data, leat.Array("npy"), batch_size=50, order=leat.balanced("cls")) as loader:
            for batch in loader:
                self.assertAlmostEqual(sum(each < 50 for each in batch.ids), 25, delta=1)

    def test_arrays_in_memory_are_samples_without_a_copy(self):
        pixels = numpy.arange(6 * 4, dtype=numpy.uint8).reshape(6, 4)
        classes = numpy.array([0, 1, 0, 1, 1, 0])
        data = leat.from_tensors({"x": pixels, "cls": classes}, classes=["cat", "dog"])
        self.assertEqual((len(data), data.classes, data.label(4)), (6, ["cat", "dog"], 1))
        with leat.Loader(data, leat.Array("x"), leat.Label(), batch_size=6, shuffle=False) as loader:
            batch = next(iter(loader))
            self.assertEqual(batch["x"].numpy().tolist(), pixels.tolist())
            self.assertEqual(batch["cls"].numpy().tolist(), classes.tolist())
        owned = sys.getrefcount(pixels)
        del data, loader, batch
        gc.collect()
        self.assertLess(sys.getrefcount(pixels), owned)
        with self.assertRaisesRegex(TypeError, "'x' is no dense array"):
            leat.from_tensors({"x": pixels[:, ::2]})
        with self.assertRaisesRegex(TypeError, "integers, floats and bool"):
            leat.from_tensors({"x": numpy.zeros(3, dtype=numpy.complex64)})

    def test_chats_are_the_ids_of_their_template_and_labels_those_of_answers(self):
        tokenizers = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "tokenizers"
        cases = [each for each in json.loads((tokenizers / "chats.json").read_text()) if each["template"] == "qwen2" and "ids" in each]
        self.assertTrue(cases)
        with (self.at / "chats.jsonl").open("w") as lines:
            for each in cases:
                lines.write(json.dumps({"messages": each["messages"]}) + "\n")
        words = leat.Tokenizer(tokenizers / "chat.json")
        field = leat.Chat("messages", words).with_template("qwen2").mask_prompt()
        batch = next(iter(leat.Loader(self.at / "chats.jsonl", field, batch_size=len(cases), shuffle=False)))
        ids, labels, offsets = (batch[name].numpy() for name in ("input_ids", "labels", "input_ids.offsets"))
        for case, begin, end in zip(cases, offsets, offsets[1:]):
            self.assertEqual(list(ids[begin:end]), case["ids"])
            self.assertEqual([label != -100 for label in labels[begin:end]], [bool(each) for each in case["answers"]])
        with self.assertRaisesRegex(leat.UsageError, "chatml.*gemma"):
            leat.Loader(self.at / "chats.jsonl", leat.Chat("messages", words).with_template("none"))

    def test_graphs_are_one_with_their_edges_moved(self):
        with (self.at / "graphs.jsonl").open("w") as lines:
            for nodes in (2, 3):
                lines.write(json.dumps({"x": [[node, 10 * node] for node in range(nodes)], "edge_index": [[0], [nodes - 1]]}) + "\n")
        field = leat.Graph().x("x", width=2, dtype="i32")
        batch = next(iter(leat.Loader(self.at / "graphs.jsonl", field, batch_size=2, shuffle=False, to="numpy")))
        self.assertEqual(batch["x"].tolist(), [[0, 0], [1, 10], [0, 0], [1, 10], [2, 20]])
        self.assertEqual(batch["edge_index"].tolist(), [[0, 2], [1, 4]])
        self.assertEqual(batch["ptr"].tolist(), [0, 2, 5])
        self.assertEqual(pickle.loads(pickle.dumps(field)), field)

    def test_plain_text_is_lines_paragraphs_or_files(self):
        (self.at / "plain.txt").write_text("one\ntwo\n\nthree\n")
        for kind, expected in (("lines", [b"one", b"two", b"three"]), ("paragraphs", [b"one\ntwo", b"three"]),
                               ("files", [b"one\ntwo\n\nthree\n"])):
            data = leat.open(self.at / "plain.txt", text=kind)
            batch = next(iter(leat.Loader(data, leat.Text("text"), batch_size=8, shuffle=False)))
            self.assertEqual([batch.bytes("text", row) for row in range(batch.valid_rows)], expected)

    def test_options_of_sources_are_keywords(self):
        self.assertEqual(len(leat.open(self.at / "rows.npy", window=10, stride=10)), 10)
        self.assertEqual(len(leat.open(self.at / "rows.npy").where("sample < 3 or sample == 7")), 4)
        self.assertEqual([each["name"] for each in leat.open(self.at / "lines.jsonl", fields=["txt"]).fields()], ["txt"])
        with self.assertRaisesRegex(TypeError, "windw=.*window="):
            leat.open(self.at / "rows.npy", windw=10)
        with self.assertRaisesRegex(leat.UsageError, ": database= is of LMDB"):
            leat.open(self.at / "rows.npy", database="x")

    def test_dtypes_are_those_of_numpy_and_torch_too(self):
        for name in ("f64", "float64", numpy.float64, numpy.dtype("float64")):
            with leat.Loader(self.at / "rows.npy", leat.Array("npy").as_(name), batch_size=2) as loader:
                self.assertEqual(next(iter(loader))["npy"].numpy().dtype, numpy.float64)


def write_png(path, numbers):
    """Grey, 8 bits: the numbers as they are."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = numbers.shape
    lines = b"".join(b"\0" + line.tobytes() for line in numbers)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


class Targets(unittest.TestCase):
    """Pictures whose pixels say where they lie, (x, y, number of the picture), with masks, boxes and points of their own."""

    WIDTH, HEIGHT, COUNT = 40, 32, 6

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = at = pathlib.Path(cls.folder.name)
        for name in ("images", "masks", "JPEGImages", "Annotations", "yolo/images", "yolo/labels"):
            (at / name).mkdir(parents=True)
        y, x = numpy.mgrid[:cls.HEIGHT, :cls.WIDTH].astype(numpy.uint8)
        coco = {"images": [], "annotations": [], "categories": [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}]}
        for number in range(cls.COUNT):
            pixels = numpy.stack([numpy.full_like(x, number), y, x], axis=-1)[::-1]  # BMP: blue, green, red, from below
            head = struct.pack("<2sIHHI", b"BM", 54 + pixels.size, 0, 0, 54)
            head += struct.pack("<IiiHHIIiiII", 40, cls.WIDTH, cls.HEIGHT, 1, 24, 0, pixels.size, 2835, 2835, 0, 0)
            for folder in ("images", "JPEGImages", "yolo/images"):
                (at / folder / f"{number}.bmp").write_bytes(head + pixels.tobytes())
            if number < cls.COUNT - 1:
                write_png(at / "masks" / f"{number}.png", cls.mask_of(x, y, number))
            left, top, width, height = cls.box_of(number)
            coco["images"].append({"id": 100 + number, "file_name": f"{number}.bmp", "width": cls.WIDTH, "height": cls.HEIGHT})
            coco["annotations"].append({"id": number, "image_id": 100 + number, "category_id": 7, "bbox": [left, top, width, height],
                                        "area": width * height, "iscrowd": 0, "keypoints": [left, top, 2, left + width, top, 1],
                                        "num_keypoints": 2})
            (at / "Annotations" / f"{number}.xml").write_text(
                f"<annotation><object><name>cat</name><bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{left + width}</xmax>"
                f"<ymax>{top + height}</ymax></bndbox></object></annotation>")
            (at / "yolo" / "labels" / f"{number}.txt").write_text(
                f"4 {(left + width / 2) / cls.WIDTH} {(top + height / 2) / cls.HEIGHT} {width / cls.WIDTH} {height / cls.HEIGHT}\n")
        (at / "coco.json").write_text(json.dumps(coco))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def mask_of(x, y, number):
        return (x // 4 + 3 * (y // 4) + number).astype(numpy.uint8)

    @staticmethod
    def box_of(number):
        return 4 + number, 6, 20, 10 + number  # left, top, width, height

    def coco(self):
        return leat.open_coco(self.at / "coco.json", self.at / "images")

    def with_masks(self, **options):
        return leat.join(self.coco(), self.at / "masks", leat.by_stem(), rename={"jpg": "mask"}, **options)

    def batch(self, source, *fields, **options):
        with leat.Loader(source, *fields, **{"batch_size": self.COUNT, "shuffle": False, **options}) as loader:
            return next(iter(loader))

    def test_masks_boxes_and_points_follow_a_picture(self):
        picture = leat.Image().random_crop(24).random_flip().as_("u8")
        batch = self.batch(self.with_masks(), picture, leat.Mask("mask").follows("jpg"),
                           leat.Boxes("boxes").from_("json").follows("jpg").key("boxes").labels("classes"),
                           leat.Points("points").from_("keypoints").follows("jpg").visibility(), seed=5)
        self.assertEqual(batch.valid_rows, self.COUNT - 1)  # One picture has no mask.
        pixels, masks, boxes, offsets = (batch[name].numpy() for name in ("jpg", "mask", "boxes", "boxes.offsets"))
        points = batch["points"].numpy().reshape(-1, 2, 3)
        self.assertEqual((masks.shape, masks.dtype), ((self.COUNT - 1, 24, 24), numpy.uint8))
        self.assertEqual(offsets.tolist(), list(range(self.COUNT)))
        self.assertEqual(batch["boxes.labels"].numpy().tolist(), [1] * (self.COUNT - 1))
        mirrored = set()
        for row, (x, y, number) in enumerate(pixels):
            numpy.testing.assert_array_equal(masks[row], self.mask_of(x, y, number))
            place = batch.placement("jpg", row)
            self.assertEqual((place.picture_width, place.picture_height, place.row_width, place.row_height, place.turned),
                             (self.WIDTH, self.HEIGHT, 24, 24, 1))
            # The matrix says of the middle of each pixel what that pixel says itself.
            there = numpy.array(place.matrix) @ [3.5, 7.5, 1]
            self.assertEqual((there[:2] / there[2]).tolist(), [x[7, 3] + 0.5, y[7, 3] + 0.5])
            mirrored.add(place.mirrored)
            left, top, width, height = self.box_of(int(number[0, 0]))
            to_row = numpy.linalg.inv(place.matrix)
            corners = (to_row @ numpy.array([[left, top, 1], [left + width, top + height, 1]]).T)[:2].T
            expected = numpy.concatenate([corners.min(axis=0), corners.max(axis=0)]).clip(0, 24)
            numpy.testing.assert_allclose(boxes[row], expected, atol=1e-4)
            for point, at, seen in zip(points[row], ([left, top, 1], [left + width, top, 1]), (2, 1)):
                expected = numpy.append((to_row @ at)[:2], seen)
                inside = (expected[:2] >= 0).all() and (expected[:2] <= 24).all()
                numpy.testing.assert_allclose(point, expected if inside else [0, 0, 0], atol=1e-4)
        self.assertEqual(mirrored, {False, True})

    def test_mosaics_take_their_masks_along(self):
        picture = leat.Image().random_crop(24).random_flip().as_("u8")
        batch = self.batch(self.with_masks(), picture, leat.Mask("mask").follows("jpg"), mix=leat.mosaic(), seed=5)
        pixels, masks, tiles = (batch[name].numpy() for name in ("jpg", "mask", "mix.tiles"))
        plain = self.batch(self.with_masks(), picture, leat.Mask("mask").follows("jpg"), seed=5)["jpg"].numpy()
        self.assertEqual(tiles[:, 0].tolist(), list(range(self.COUNT - 1)))
        for row, (x, y, number) in enumerate(pixels):
            numpy.testing.assert_array_equal(masks[row], self.mask_of(x, y, number))
            self.assertEqual(set(number.ravel()), {plain[other, 2, 0, 0] for other in tiles[row]})
        with self.assertRaisesRegex(leat.UsageError, "the row is a mosaic of four pictures"):
            batch.placement("jpg", 0)

    def test_a_mask_follows_warps(self):
        picture = leat.Image().resize(self.HEIGHT, self.WIDTH).affine(degrees=(30, 30), fill=(99, 99, 99)).as_("u8")
        batch = self.batch(self.with_masks(), picture, leat.Mask("mask").follows("jpg"))
        for (x, y, number), mask in zip(batch["jpg"].numpy(), batch["mask"].numpy()):
            outside = x == 99
            self.assertTrue(0.1 < outside.mean() < 0.5)
            numpy.testing.assert_array_equal(mask, numpy.where(outside, 255, self.mask_of(x, y, number)))

    def test_depths_and_further_lists_of_boxes_follow(self):
        whole = leat.Image().resize(self.HEIGHT, self.WIDTH).as_("u8")
        read = leat.Boxes("boxes").from_("json").follows("jpg").key("boxes").labels("classes").with_("iscrowd").with_("area", "f32")
        batch = self.batch(self.with_masks(), whole, leat.Depth("depth").from_("mask").follows("jpg"), read.padded(3, -1))
        depths, boxes, areas = (batch[name].numpy() for name in ("depth", "boxes", "boxes.area"))
        self.assertEqual((depths.dtype, boxes.shape, areas.dtype), (numpy.uint16, (self.COUNT - 1, 3, 4), numpy.float32))
        self.assertEqual(batch["boxes.count"].numpy().tolist(), [1] * (self.COUNT - 1))
        for row, (x, y, number) in enumerate(batch["jpg"].numpy()):
            numpy.testing.assert_array_equal(depths[row], self.mask_of(x, y, number))
            left, top, width, height = self.box_of(row)
            self.assertEqual(boxes[row].tolist(), [[left, top, left + width, top + height], [-1] * 4, [-1] * 4])
            self.assertEqual(areas[row].tolist(), [width * height, -1, -1])
        self.assertEqual(batch["boxes.iscrowd"].numpy()[0].tolist(), [0, -1, -1])

    def test_a_clip_has_the_frames_of_a_sample(self):
        shard = self.at / "clips.tar"
        with tarfile.open(shard, "w", format=tarfile.USTAR_FORMAT) as members:
            for sample in range(2):
                for frame in range(4):
                    members.add(self.at / "images" / f"{sample + frame}.bmp", f"{sample}.{frame:03}.bmp")
        clip = leat.Clip(leat.Image("clip").from_("*.bmp").random_crop(16).as_("u8"), frames=2, stride=2, first=1)
        rows = self.batch(shard, clip, batch_size=2)["clip"].numpy()
        self.assertEqual(rows.shape, (2, 2, 3, 16, 16))
        self.assertEqual(rows[:, :, 2, 0, 0].tolist(), [[1, 3], [2, 4]])
        numpy.testing.assert_array_equal(rows[:, 0, :2], rows[:, 1, :2])  # Cropped alike.
        self.assertEqual(pickle.loads(pickle.dumps(clip)), clip)
        whole = leat.Image("clip").from_("*.bmp").resize(8, 8).as_("u8")
        rows = self.batch(shard, leat.Clip(whole, frames=5, missing="repeat_last"), batch_size=2)["clip"].numpy()
        self.assertEqual(rows[:, :, 2, 0, 0].tolist(), [[0, 1, 2, 3, 3], [1, 2, 3, 4, 4]])
        with self.assertRaisesRegex(leat.UsageError, "wants frame 4"):
            self.batch(shard, leat.Clip(whole, frames=5), batch_size=2)
        with self.assertRaisesRegex(ValueError, "'corrupt', 'repeat_last'"):
            leat.Clip(leat.Image(), missing="skip")

    def test_grey_pictures_have_one_channel(self):
        rows = self.batch(self.coco(), leat.Image().channels(1).as_("u8").resize(self.HEIGHT, self.WIDTH))["jpg"].numpy()
        self.assertEqual(rows.shape, (self.COUNT, 1, self.HEIGHT, self.WIDTH))
        self.assertEqual(rows[3, 0, 20, 10], round(0.299 * 10 + 0.587 * 20 + 0.114 * 3))

    def test_what_is_not_seen_of_a_picture_is_ignored_or_dropped(self):
        fields = [leat.Image().letterbox(64).as_("u8"), leat.Mask("mask").follows("jpg").ignore(200).as_("i32"),
                  leat.Boxes("boxes").from_("json").follows("jpg").key("boxes").min_area(1e6),
                  leat.Points("keypoints").follows("jpg").visibility().flip_pairs(2, [(0, 1)])]
        batch = self.batch(self.with_masks(), *fields)
        masks = batch["mask"].numpy()
        self.assertEqual(masks.dtype, numpy.int32)
        self.assertTrue((masks[:, 0] == 200).all() and (masks[:, 32] != 200).all())
        self.assertEqual(batch["boxes"].shape, (0, 4))
        self.assertEqual(batch["keypoints"].numpy()[:, 2].tolist(), [2, 1] * (self.COUNT - 1))
        with self.assertRaisesRegex(leat.UsageError, "follows"):
            self.batch(self.with_masks(), leat.Image().resize(8, 8), leat.Mask("mask"))
        with self.assertRaisesRegex(ValueError, "'xyxy', 'xywh', 'cxcywh', 'yolo'"):
            leat.Boxes("json").in_("ltrb")
        with self.assertRaisesRegex(KeyError, "mask.*jpg"):
            batch.placement("mask", 0)
        with self.assertRaisesRegex(leat.UsageError, "the batch has 5 rows"):
            batch.placement("jpg", 5)

    def test_sets_with_boxes(self):
        whole = leat.Image().as_("u8").resize(self.HEIGHT, self.WIDTH)
        read = leat.Boxes("boxes").from_("json").follows("jpg").key("boxes").labels("classes")
        lines = leat.Boxes("boxes").from_("txt").follows("jpg").in_("yolo")
        expected = numpy.array([[left, top, left + width, top + height] for left, top, width, height in map(self.box_of, range(self.COUNT))])
        for data, field, classes, label in ((self.coco(), read, ["cat", "dog"], 1), (leat.open_voc(self.at), read, ["cat"], 0),
                                            (leat.open_yolo(self.at / "yolo"), lines, [], 4)):
            with self.subTest(repr(data)):
                self.assertEqual((len(data), data.classes), (self.COUNT, classes))
                batch = self.batch(pickle.loads(pickle.dumps(data)), whole, field)
                numpy.testing.assert_allclose(batch["boxes"].numpy(), expected, atol=1e-4)
                self.assertEqual(batch["boxes.labels"].numpy().tolist(), [label] * self.COUNT)

    def test_joins_pair_samples_by_a_key(self):
        self.assertEqual(len(self.with_masks()), self.COUNT - 1)
        names = {each["name"] for each in self.with_masks().fields()}
        self.assertLessEqual({"jpg", "json", "mask", "image_id"}, names)
        batch = self.batch(self.with_masks(missing="corrupt"), leat.Image().resize(8, 8), leat.Bytes("mask"), on_corrupt="skip")
        self.assertEqual(batch.valid_rows, self.COUNT - 1)
        with self.assertRaisesRegex(leat.CorruptError, "on_corrupt='skip' or 'substitute'"):
            self.batch(self.with_masks(missing="corrupt"), leat.Image().resize(8, 8), leat.Bytes("mask"))
        table = self.at / "labels.jsonl"
        table.write_text("".join(json.dumps({"file": f"{number}.bmp", "cls": 10 * number}) + "\n" for number in (4, 2, 0)))
        data = leat.join(self.at / "images", table, leat.by("name", "file"))
        batch = self.batch(data, leat.Image().resize(8, 8).as_("u8"), leat.Label())
        self.assertEqual(batch["cls"].numpy().tolist(), [0, 20, 40])
        self.assertEqual(batch["jpg"].numpy()[:, 2, 0, 0].tolist(), [0, 2, 4])
        self.assertEqual(repr(leat.by("name", "file")), "by('name', 'file')")
        self.assertEqual((leat.by("id").left, leat.by("id").right), ("id", "id"))
        with self.assertRaisesRegex(leat.UsageError, "both sides have .jpg.; rename= gives"):
            leat.join(self.coco(), self.at / "masks", leat.by_stem())
        with self.assertRaisesRegex(TypeError, "rename= is a dict of names"):
            leat.join(self.coco(), self.at / "masks", leat.by_stem(), rename={"jpg": 1})

    def test_views_share_a_decode_and_draw_by_names_of_their_own(self):
        picture = leat.Image().random_crop(16).random_flip().as_("u8")
        together = picture.from_("jpg").together("view/1")
        batch = self.batch(self.coco(), leat.views(picture, 3, "view"), seed=3)
        views = batch["view"].numpy()
        self.assertEqual((views.shape, views.dtype), ((self.COUNT, 3, 3, 16, 16), numpy.uint8))
        self.assertFalse((views[:, 0] == views[:, 1]).all())
        numpy.testing.assert_array_equal(self.batch(self.coco(), together, seed=3)["jpg"].numpy(), views[:, 1])
        followed = self.batch(self.with_masks(), leat.views(picture, 3, "view"), leat.Mask("mask").follows("view[1]"), seed=3)
        for row, (x, y, number) in enumerate(followed["view"].numpy()[:, 1]):
            numpy.testing.assert_array_equal(followed["mask"].numpy()[row], self.mask_of(x, y, number))
        field = leat.views(picture, 3, "view")
        self.assertEqual((pickle.loads(pickle.dumps(field)), field.name), (field, "view"))
        with self.assertRaisesRegex(leat.UsageError, "0 of them; give 1 to 256"):
            leat.views(picture, 0, "view")

    def test_five_and_ten_crops_are_torchvision_s(self):
        x, y = numpy.meshgrid(numpy.arange(self.WIDTH), numpy.arange(self.HEIGHT))
        picture = leat.Image().as_("u8")
        ten = self.batch(self.coco(), leat.ten_crop(picture, 20))["jpg"].numpy()
        five = self.batch(self.coco(), leat.five_crop(picture, 20))["jpg"].numpy()
        self.assertEqual((ten.shape, five.shape), ((self.COUNT, 10, 3, 20, 20), (self.COUNT, 5, 3, 20, 20)))
        for half, across in ((0, x), (5, x[:, ::-1])):
            for number, (left, top) in enumerate(((0, 0), (20, 0), (0, 12), (20, 12), (10, 6))):
                where = numpy.s_[top:top + 20, left:left + 20]
                numpy.testing.assert_array_equal(ten[2, half + number, 0], across[where])
                numpy.testing.assert_array_equal(ten[2, half + number, 1], y[where])
        numpy.testing.assert_array_equal(five, ten[:, :5])


class Pickled(Made):
    def test_datasets_and_fields_come_back_as_they_were_made(self):
        data = leat.concat([leat.open(self.at / "rows.npy").slice(10, 50), leat.open(self.at / "rows.npy").split(3, [0.5])[1]])
        field = leat.Array("x").from_("npy").slice(0, 2, 4).as_(numpy.float64)
        again_data, again_field = pickle.loads(pickle.dumps((data, field)))
        self.assertEqual((again_data, again_field), (data, field))
        self.assertNotEqual(again_field, field.flip(0))
        self.assertEqual(pickle.loads(pickle.dumps(leat.bucketed("npy", tokens_max=100))).name, "bucketed")
        with leat.Loader(data, field, digests=True, seed=1) as one, leat.Loader(again_data, again_field, digests=True, seed=1) as other:
            self.assertEqual([batch.digest for batch in one], [batch.digest for batch in other])

    def test_a_spawned_process_gets_a_dataset(self):
        ended = run("""
            import multiprocessing, sys, pyleat as leat
            def count(data, field):
                with leat.Loader(data, field) as loader:
                    return sum(batch.valid_rows for batch in loader)
            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.apply(count, (leat.open(sys.argv[1]).slice(0, 70), leat.Array("npy"))))
            """, self.at / "rows.npy", as_file=self.at / "spawned.py")
        self.assertEqual(ended.stdout, "70\n", ended.stderr)

    def test_a_value_keeps_its_arguments_as_they_were(self):
        data = leat.open(self.at / "rows.npy")
        numbers, weights, names = [3, 4], numpy.ones(ROWS), {"description": "x"}
        part, order = data.subset(numbers), leat.weighted(weights)
        numbers.append(5)
        weights[:] = 0
        self.assertEqual(len(pickle.loads(pickle.dumps(part))), 2)
        self.assertEqual(order, leat.weighted(numpy.ones(ROWS)))
        self.assertNotEqual(order, leat.weighted(weights))
        self.assertEqual(pickle.loads(pickle.dumps(order)), order)
        mean = [0.5, 0.5, 0.5]
        picture = leat.Image().normalize((mean, [1.0, 1.0, 1.0]))
        mean[0] = 9.0
        self.assertEqual(picture, leat.Image().normalize(([0.5, 0.5, 0.5], [1.0, 1.0, 1.0])))
        self.assertEqual(leat.Image().resize(numpy.int64(8), 8), leat.Image().resize(8, 8))
        # An iterator is looked at once.
        self.assertEqual(repr(data.subset(each for each in (1, 2))), f"{data!r}.subset([1, 2])")
        every = pickle.loads(pickle.dumps(leat.open(each for each in [self.at / "lines.jsonl"])))
        self.assertEqual(len(every), 20)
        self.assertIn("[0, 1, 2, ... 50 in all]", repr(data.subset(list(range(50)))))

    def test_how_batches_are_mixed_is_a_value_too(self):
        for mix in (leat.mixup(0.3), leat.cutmix(), leat.mosaic(0.5)):
            self.assertEqual(pickle.loads(pickle.dumps(mix)), mix)
            self.assertIsInstance(mix, leat.BatchMix)
        self.assertEqual(repr(leat.mixup(0.3)), "mixup(0.3)")

    def test_type_checkers_see_what_the_package_exports(self):
        package = pathlib.Path(leat.__file__).parent
        tree = ast.parse((package / "__init__.py").read_text())
        said = [ast.literal_eval(each.value) for each in tree.body
                if isinstance(each, ast.Assign) and each.targets[0].id == "__all__"]
        public = {name for name, each in vars(leat).items() if not name.startswith("_") and not isinstance(each, types.ModuleType)}
        self.assertEqual(set(said[0]), public - {"open", "zip"})
        for name in ("_loader", "torch", "lightning", "grain"):
            classes = [{each.name: {method.name for method in each.body if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")}
                        for each in ast.parse((package / f"{name}{ending}").read_text()).body
                        if isinstance(each, ast.ClassDef) and not each.name.startswith("_")} for ending in (".pyi", ".py")]
            self.assertEqual(classes[0].keys(), classes[1].keys(), name)
            for each, methods in classes[0].items():
                self.assertLessEqual(methods, classes[1][each], f"{name}.{each}")

    def test_type_checkers_see_every_value_and_its_methods(self):
        package = pathlib.Path(leat.__file__).parent
        stub = ast.parse((package / "_values.pyi").read_text()).body[0]
        values = importlib.import_module("pyleat._values")
        self.assertEqual({each.asname for each in stub.names},
                         {name for name, each in vars(values).items() if not name.startswith("_") and callable(each)})
        if not (package / "_leat.pyi").exists():
            self.skipTest("the module's own stub is not beside it: it is made for wheels")
        seen = {each.name: {method.name for method in each.body if isinstance(method, ast.FunctionDef)}
                for each in ast.parse((package / "_leat.pyi").read_text()).body if isinstance(each, ast.ClassDef)}
        self.assertLessEqual({"from_", "follows", "in_", "min_area"}, seen["Boxes"])

    def test_help_finds_what_the_module_says(self):
        self.assertIn("resize(height, width)", inspect.getdoc(leat.Image.resize))
        self.assertIn("a path, a pattern, an address", inspect.getdoc(leat.open))

    def test_it_is_shown_as_it_is_written(self):
        field = leat.Image("view").from_("jpg").random_resized_crop(224, scale=(0.5, 1))
        self.assertEqual(repr(field), "Image('view').from_('jpg').random_resized_crop(224, scale=(0.5, 1))")


class Memory(Made):
    def test_an_array_outlives_its_batch_and_its_loader(self):
        with self.rows(shuffle=False) as loader:
            array = numpy.from_dlpack(next(iter(loader))["npy"])
        del loader
        gc.collect()
        self.assertEqual(array[:, 0].tolist(), [float(each) for each in range(8)])

    def test_memory_is_returned_by_the_last_that_looks_at_it_on_any_thread(self):
        with self.rows() as loader:
            held = [numpy.from_dlpack(next(iter(loader))["npy"])]
            self.assertEqual(loader.stats()["batches_out"], 1)
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join()
            self.assertEqual(loader.stats()["batches_out"], 0)

    def test_numpy_makes_arrays_of_tensors(self):
        with self.rows(shuffle=False) as loader:
            tensor = next(iter(loader))["npy"]
            self.assertEqual(numpy.asarray(tensor).shape, (8, 8))
            self.assertTrue(numpy.shares_memory(numpy.asarray(tensor), tensor.numpy()))
            self.assertFalse(numpy.shares_memory(numpy.array(tensor, copy=True), tensor.numpy()))
            self.assertEqual(numpy.array(tensor, dtype=numpy.int16).dtype, numpy.int16)
            self.assertEqual(numpy.mean(tensor), 3.5)
            with self.assertRaisesRegex(ValueError, "copy"):
                tensor.__array__(numpy.dtype("int16"), copy=False)

    def test_what_dlpack_cannot_do_is_a_buffer_error(self):
        with self.rows() as loader:
            tensor = next(iter(loader))["npy"]
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            tensor.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        self.assertIn('"dltensor"', repr(tensor.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(tensor.__dlpack__(max_version=(1, 0))))

    def test_a_batch_is_shown_by_its_outputs(self):
        with leat.Loader(self.at / "pictures", leat.Image().resize(8, 8), leat.Label(), batch_size=2) as loader:
            batch = next(iter(loader))
        self.assertEqual(repr(batch), "pyleat.Batch(jpg: f32 [2, 3, 8, 8], cls: i64 [2])")
        self.assertEqual(repr(batch["cls"]), "pyleat.Tensor(i64 [2])")

    def test_bf16_reaches_numpy_by_another_type_only(self):
        with leat.Loader(self.at / "pictures", leat.Image().resize(8, 8).as_("bf16"), batch_size=2) as loader:
            with self.assertRaisesRegex(TypeError, "bf16"):
                next(iter(loader))["jpg"].numpy()

    def test_loaders_that_were_dropped_leave_no_descriptor_and_no_thread(self):
        def now():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        def use():
            loader = self.rows(decode_threads=1)
            next(iter(loader))

        use()
        before = now()
        for _ in range(50):
            use()
        gc.collect()
        self.assertEqual(now(), before)


class States(Made):
    def test_a_run_goes_on_after_the_batch_that_was_handed_out_last(self):
        with self.rows(seed=9, digests=True) as loader:
            whole = [batch.digest for _ in range(2) for batch in loader]
        with self.rows(seed=9, digests=True) as loader:
            steps = iter(loader)
            first = [next(steps).digest for _ in range(5)]
            state = json.loads(json.dumps(loader.state_dict()))
        self.assertEqual((state["epoch"], state["batch"]), (0, 5))
        with self.rows(seed=9, digests=True) as loader:
            loader.load_state_dict(state)
            rest = [batch.digest for _ in range(2) for batch in loader]
        self.assertEqual(first + rest, whole)

    def test_a_state_may_be_of_any_batch_that_is_held(self):
        with self.rows(seed=9) as loader, self.rows(seed=9) as other:
            steps = iter(loader)
            held, states = [], []
            for _ in range(3):
                held.append(next(steps))
                states.append(loader.state_dict())
            self.assertEqual([loader.state_dict(after=batch) for batch in held], states)
            with self.assertRaisesRegex(leat.UsageError, "another loader"):
                other.state_dict(held[0])

    def test_a_state_of_another_run_is_refused_by_name_and_changes_nothing(self):
        with self.rows(seed=9) as loader:
            state = loader.state_dict()
        with self.rows(seed=8) as loader:
            with self.assertRaisesRegex(leat.UsageError, "seed"):
                loader.load_state_dict(state)
            self.assertEqual(sum(batch.valid_rows for batch in loader), ROWS)
            with self.assertRaises(KeyError):
                loader.load_state_dict({"epoch": 3})
            for damaged in ("xx", "", 5, state["state"][:100]):
                with self.assertRaises(leat.Error):
                    loader.load_state_dict({"state": damaged})

    def test_others_may_look_at_a_loader_while_its_state_is_loaded(self):
        with self.rows(seed=9) as loader:
            state = loader.state_dict()
            ends = threading.Event()

            def look():
                while not ends.is_set():
                    len(loader), loader.stats(), loader.samples, loader.metrics()

            thread = threading.Thread(target=look)
            thread.start()
            for _ in range(20):
                loader.load_state_dict(state)
            ends.set()
            thread.join()
            self.assertEqual(sum(batch.valid_rows for batch in loader), ROWS)


class MappedBatches(Made):
    def mapped(self, function, **options):
        return self.rows(map_batch=function, to="numpy", **options)

    def test_the_loop_gets_what_the_function_returns_in_order(self):
        plain = [batch["npy"].numpy()[:, 0].copy() for batch in self.rows(shuffle=True)]
        train = self.mapped(lambda batch: batch["npy"][:, 0] * 2, shuffle=True)
        for _ in range(2):  # The second epoch has another order, and as many.
            twice = list(train)
            self.assertEqual(len(twice), len(plain))
        train = self.mapped(lambda batch: batch["npy"][:, 0] * 2, shuffle=True)
        for mine, theirs in zip(train, plain):
            numpy.testing.assert_array_equal(mine, theirs * 2)
        self.assertEqual(train.stats()["map_batch_calls"], len(plain))
        self.assertGreater(train.stats()["map_batch_s"], 0)

    def test_the_function_is_at_the_next_batch_while_the_loop_has_one(self):
        begun = [threading.Event() for _ in range(13)]
        numbers = iter(range(13))

        def function(batch):
            begun[next(numbers)].set()
            return batch["npy"].copy()

        batches = iter(self.mapped(function))
        next(batches)
        self.assertTrue(begun[1].wait(30))

    def test_what_a_break_leaves_is_dropped(self):
        train = self.mapped(lambda batch: batch["npy"].copy(), shuffle=False)
        for batch in train:
            break
        rows = numpy.concatenate(list(train))[:, 0]
        numpy.testing.assert_array_equal(rows, numpy.arange(ROWS))

    def test_a_state_is_of_the_batch_that_was_handed_out(self):
        def first(batch):
            return batch["npy"][:, 0].copy()

        train = self.mapped(first, shuffle=True, seed=3)
        whole = list(self.mapped(first, shuffle=True, seed=3))
        batches = iter(train)
        for expected in whole[:4]:
            numpy.testing.assert_array_equal(next(batches), expected)
        state = train.state_dict()
        self.assertEqual(state["batch"], 4)
        resumed = self.mapped(first, shuffle=True, seed=3)
        resumed.load_state_dict(state)
        rest = list(resumed)
        self.assertEqual(len(rest), len(whole) - 4)
        for mine, expected in zip(rest, whole[4:]):
            numpy.testing.assert_array_equal(mine, expected)

    def test_what_the_function_raises_reaches_the_loop_and_the_next_goes_on(self):
        seen = []

        def function(batch):
            seen.append(batch["npy"][0, 0])
            if len(seen) == 2:
                raise ZeroDivisionError("of the function")
            return seen[-1]

        train = self.mapped(function, shuffle=False)
        batches = iter(train)
        self.assertEqual(next(batches), 0)
        with self.assertRaisesRegex(ZeroDivisionError, "of the function"):
            next(batches)
        self.assertEqual(train.state_dict()["batch"], 1)
        self.assertEqual(train.next(), 16)
        self.assertEqual(len(list(train)), 13)

    def test_a_state_is_never_of_batches_that_nobody_got(self):
        second = []

        def function(batch):
            if second:
                raise ValueError("the first one")
            return list(batch.ids)

        train = self.rows(map_batch=function, shuffle=True)
        plain = [list(batch.ids) for batch in self.rows(shuffle=True)]
        begun = iter(train)
        next(begun)
        next(begun)
        iter(train)  # The second epoch, of which nothing has come.
        place = train.state_dict()
        self.assertEqual((place["epoch"], place["batch"]), (1, 0))
        second.append(True)
        failing = self.rows(map_batch=function, shuffle=True)
        with self.assertRaisesRegex(ValueError, "the first one"):
            next(iter(failing))
        place = failing.state_dict()
        self.assertEqual((place["epoch"], place["batch"]), (0, 0))
        second.clear()
        again = self.rows(map_batch=function, shuffle=True)
        again.load_state_dict(place)
        self.assertEqual(list(again), plain)

    def test_none_and_what_is_no_function_are_refused(self):
        with self.assertRaisesRegex(TypeError, "map_batch returned None"):
            next(iter(self.mapped(lambda batch: None)))
        with self.assertRaisesRegex(TypeError, "map_batch= is a function of a batch, and not 'f'"):
            self.mapped("f")

    def test_async_for_gets_the_same(self):
        async def run(train):
            return [batch async for batch in train]

        def first(batch):
            time.sleep(0)
            return batch["npy"][:, 0].copy()

        numpy.testing.assert_array_equal(numpy.concatenate(asyncio.run(run(self.mapped(first, shuffle=True)))),
                                         numpy.concatenate(list(self.mapped(first, shuffle=True))))

    def test_a_stopped_loader_says_so(self):
        train = self.mapped(lambda batch: batch["npy"].copy())
        next(iter(train))
        train.stop()
        with self.assertRaises(leat.CancelledError):
            while True:
                train.next()

    def test_loaders_that_were_dropped_leave_no_thread(self):
        def fails(batch):
            raise ValueError("of the function")

        for function in (lambda batch: batch["npy"].copy(), fails):
            for _ in range(5):
                train = self.mapped(function)
                batches = iter(train)
                try:
                    next(batches)
                except ValueError:
                    pass
                del train, batches
        gc.collect()
        for each in threading.enumerate():
            if each.name == "pyleat map_batch":
                each.join(30)
                self.assertFalse(each.is_alive())

    def test_the_end_of_the_interpreter_with_one_alive(self):
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(f"""
            import pyleat as leat
            train = leat.Loader({str(self.at / "rows.npy")!r}, leat.Array("npy"), batch_size=8, map_batch=lambda batch: batch)
            batches = iter(train)
            next(batches)
            print("ended")
        """)], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "ended\n", ""))


class FunctionsOfC(Made):
    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_float), ctypes.c_size_t,
                                 ctypes.POINTER(ctypes.c_uint64))

    def address(self, function):
        self.kept = self.signature(function)  # Of Python here, for want of a compiler; it is called as one of C is.
        return ctypes.cast(self.kept, ctypes.c_void_p).value

    def test_it_writes_rows_and_knows_its_sample(self):
        def function(data, size, row, row_bytes, sample):
            row[0], row[1], row[2] = size, row_bytes, sample[0]
            row[3] = sample[4] if sample[5] else -1
            return 0

        field = leat.Custom("what", "f32", (2, 2), self.address(function)).from_("jpg")
        size = os.path.getsize(self.at / "pictures" / "red" / "0.bmp")
        with leat.Loader(self.at / "pictures", field, batch_size=10, shuffle=False) as train:
            rows = train.next()["what"].numpy()
        self.assertEqual(rows.shape, (10, 2, 2))
        numpy.testing.assert_array_equal(rows[:, 0, 0], size)
        numpy.testing.assert_array_equal(rows[:, 0, 1], 16)
        numpy.testing.assert_array_equal(rows[:, 1, 0], numpy.arange(10))
        numpy.testing.assert_array_equal(rows[:, 1, 1], [0] * 5 + [1] * 5)

    def test_another_answer_than_0_is_a_corrupt_sample(self):
        field = leat.Custom("what", "f32", (1,), self.address(lambda *_: 7)).from_("jpg")
        with leat.Loader(self.at / "pictures", field, batch_size=10, shuffle=False) as train:
            with self.assertRaisesRegex(leat.CorruptError, "answered 7"):
                train.next()

    def test_a_state_wants_a_name_for_it(self):
        field = leat.Custom("what", "f32", (1,), self.address(lambda *_: 0)).from_("jpg")
        with leat.Loader(self.at / "pictures", field, batch_size=5, shuffle=False) as train:
            with self.assertRaisesRegex(leat.UsageError, "described_as"):
                train.state_dict()
        with leat.Loader(self.at / "pictures", field.described_as("zeros"), batch_size=5, shuffle=False) as train:
            self.assertEqual(train.state_dict()["batch"], 0)

    def test_it_follows_a_picture(self):
        def function(data, size, row, row_bytes, sample):
            row[0] = os.path.getsize(self.at / "pictures" / "red" / "0.bmp") == size
            for i in range(6):
                row[1 + i] = sample[6 + i]
            matrix = ctypes.cast(ctypes.byref(sample.contents, 12 * 8), ctypes.POINTER(ctypes.c_double))
            for i in range(9):
                row[7 + i] = matrix[i]
            return 0

        picture = leat.Image().random_resized_crop(8).random_flip()
        field = leat.Custom("lies", "f32", (16,), self.address(function)).from_("jpg")
        with leat.Loader(self.at / "pictures", picture, field.follows("jpg"), batch_size=10, seed=4) as train:
            batch = train.next()
            rows = batch["lies"].numpy()
            turned_over = 0
            for row, told in enumerate(rows):
                lies = batch.placement("jpg", row)
                self.assertEqual(told[:7].tolist(), [1, lies.picture_width, lies.picture_height, lies.row_width, lies.row_height,
                                                     lies.turned, lies.mirrored])
                self.assertEqual(told[7:].tolist(), numpy.asarray(lies.matrix, dtype="f4").ravel().tolist())
                turned_over += lies.mirrored
            self.assertTrue(0 < turned_over < 10)
        with self.assertRaisesRegex(leat.UsageError, "png"):
            leat.Loader(self.at / "pictures", picture, field.follows("png"), batch_size=10)

    def test_a_function_of_python_is_refused_with_a_remedy(self):
        for wrong in (lambda *_: 0, "f", 1.5, True):
            with self.assertRaisesRegex(TypeError, "numba.cfunc.*map_batch="):
                leat.Custom("what", "f32", (1,), wrong)
        with self.assertRaisesRegex(ValueError, "no function at 0"):
            leat.Custom("what", "f32", (1,), 0)

    def test_an_address_is_not_pickled(self):
        with self.assertRaisesRegex(TypeError, "address of this process"):
            pickle.dumps(leat.Custom("what", "f32", (1,), self.address(lambda *_: 0)))


class Errors(Made):
    def test_an_error_is_also_the_builtin_that_it_resembles(self):
        with self.assertRaises(FileNotFoundError) as caught:
            leat.open(self.at / "nothing")
        self.assertIsInstance(caught.exception, leat.Error)
        with self.assertRaisesRegex(ValueError, "did you mean 'npy'"):
            leat.Loader(self.at / "rows.npy", leat.Array("nyp"))
        with self.assertRaisesRegex(MemoryError, "host_bytes_max="):
            self.rows(host_bytes_max=1)

    def test_an_option_that_is_none_is_a_type_error_with_its_name(self):
        with self.assertRaisesRegex(TypeError, "batch_sise=.*batch_size="):
            self.rows(batch_sise=4)
        with self.assertRaisesRegex(TypeError, "num_workers=.*decode_threads="):
            self.rows(num_workers=4)
        for wrong in ("4", -1, 10**30):
            with self.assertRaisesRegex(TypeError, "batch_size= takes a whole number from 0 on that fits, and not"):
                self.rows(batch_size=wrong)
        for wrong in (-1, 1.5):
            with self.assertRaisesRegex(TypeError, "numa= takes 'automatic', 'off' or the number of a node"):
                self.rows(numa=wrong)
        with self.assertRaisesRegex(ValueError, "numa= is the number of a node, or is one of 'automatic', 'off', and not 'on'"):
            self.rows(numa="on")
        with self.assertRaisesRegex(TypeError, "needs a field"):
            leat.Loader(self.at / "rows.npy")
        with self.assertRaisesRegex(ValueError, "'keep', 'drop', 'pad'"):
            self.rows(last="throw")
        with self.assertRaisesRegex(KeyError, "npy"):
            with self.rows() as loader:
                next(iter(loader))["jpg"]

    def test_a_message_is_in_the_spelling_of_python(self):
        pictures = self.at / "pictures"
        for wrong, said in (
            (lambda: leat.Loader(pictures, leat.Image().resize(8, 8), leat.Image().resize(8, 8)), r'pyleat\.Image\("view2"\)\.from_\("jpg"\)'),
            (lambda: leat.Loader(pictures, leat.Image("png").resize(8, 8)), r'\.from_\("jpg"\) reads'),
            (lambda: leat.Loader(pictures, leat.Image().resize(8, 8), order=leat.packed(64)), r'pyleat\.Tokenize\("text", words\)'),
            (lambda: leat.join(pictures, pictures, leat.by_stem()), r'\{"jpg": "another"\}'),
            (lambda: self.rows(on_corrupt="skip", corrupt_max=1.5), "corrupt_max= is 1.5"),
        ):
            with self.assertRaisesRegex(leat.UsageError, said) as caught:
                wrong()
            self.assertNotIn("leat::", str(caught.exception))
        (self.at / "numbers.bin").write_bytes(bytes(2000))
        with self.assertRaisesRegex(leat.UsageError, r"pyleat\.open_tokens\(\)"):
            leat.open(self.at / "numbers.bin")
        in_python = importlib.import_module("pyleat._errors").in_python
        self.assertEqual(in_python("loader_options::on_corrupt = skip or substitute; loader_options::device_required = false"),
                         "on_corrupt='skip' or 'substitute'; device_required=False")
        self.assertEqual(in_python("with {.type = leat::dtype::u32}; say .stored(leat::layout::nhwc)"), "with dtype='u32'; say .stored('nhwc')")
        for text, said in (
            ("give it (loader_options::order = shuffled_blocks(n))", "give it (order=pyleat.shuffled_blocks(n))"),
            ("nor with loader_options::order = node_local(), where", "nor with order=pyleat.node_local(), where"),
            ("rows (array_options::sample::row); decode_on::automatic", "rows (samples='row'); decode_on='automatic'"),
            ("jpeg_decoder::turbo, pixel_rounding::exact", "decoder('turbo'), rounding('exact')"),
            ("chat::with_template() and image::bits(16)", "Chat.with_template() and Image.bits(16)"),
            ("a smaller length (tokens::length)", "a smaller length (length=)"),
            ("the width (token_options::type); index_options::use = rebuild", "the width (dtype=); index='rebuild'"),
        ):
            self.assertEqual(in_python(text), said)

    def test_what_is_no_source_and_no_field_is_said(self):
        for wrong in (None, 3, {"x": numpy.zeros(3)}):
            for call in (leat.open, lambda source: leat.Loader(source, leat.Array("npy"))):
                with self.assertRaisesRegex(TypeError, "a source is a path, a pattern, an address, a list of them or a Dataset"):
                    call(wrong)
        with open(self.at / "rows.npy", "rb") as file, self.assertRaisesRegex(TypeError, "give its name"):
            leat.open(file)
        for several in ({"a.tar", "b.tar"}, frozenset(["a.tar"])):
            with self.assertRaisesRegex(TypeError, r"give sorted\(\) of it"):
                leat.open(several)
        with self.assertRaisesRegex(TypeError, r"from_tensors\(\) makes one"):
            leat.open({"x": numpy.zeros(3)})
        with self.assertRaisesRegex(TypeError, r"one by one: Loader\(source, \*fields\)"):
            leat.Loader(self.at / "rows.npy", [leat.Array("npy")])
        with self.assertRaisesRegex(TypeError, "options are keywords"):
            leat.Loader(self.at / "rows.npy", leat.Array("npy"), 64)
        for name, here in (("resume", r"load_state_dict\(\)"), ("transform", "methods"), ("rank", r"world=\(rank, size\)")):
            with self.assertRaisesRegex(TypeError, f"{name}=.*{here}"):
                self.rows(**{name: 1})
        for wrong in (-1, 1e30, float("nan")):
            with self.assertRaisesRegex(TypeError, "held_patience= takes seconds, and not"):
                self.rows(held_patience=wrong)

    def test_a_name_that_is_no_text_is_a_file_s_name(self):
        name = os.fsdecode(b"caf\xe9")
        folder = self.at / "names" / name
        folder.mkdir(parents=True)
        write_bmp(folder / "1.bmp", (255, 0, 0))
        write_bmp(folder / os.fsdecode(b".\xe9.bmp"), (255, 0, 0))
        for path in (folder.parent, os.fsencode(folder.parent)):
            data = leat.open(path)
            self.assertIn(os.fsdecode(b".\xe9.bmp"), " ".join(data.notes))
            self.assertEqual((data.name(0), data.classes), (f"{name}/1.bmp", [name]))
        with leat.Loader(data, leat.Image().resize(8, 8), names=True) as loader:
            self.assertEqual(next(iter(loader)).names, [f"{name}/1.bmp"])
        with self.assertRaisesRegex(leat.NotFoundError, r"caf\\xe9/nothing"):
            leat.open(folder / "nothing")
        with self.assertRaisesRegex(ValueError, "zero byte"):
            leat.open(f"{folder.parent}\0/nothing")

    def test_a_loop_that_keeps_all_batches_is_told_so(self):
        for options in ({}, {"to": "numpy"}, {"map_batch": lambda batch: batch}):
            with self.rows(batch_size=1, held_patience=0.2, host_bytes_max=8 << 20, prefetch_batches=2, **options) as loader, \
                 self.assertRaisesRegex(leat.UsageError, "you hold all .* batches"):
                list(loader)

    def test_a_loader_is_not_pickled_and_says_why(self):
        with self.rows() as loader, self.assertRaisesRegex(TypeError, "Dataset, fields and options"):
            pickle.dumps(loader)

    def test_a_stopped_loader_says_so(self):
        loader = self.rows()
        loader.stop()
        with self.assertRaises(leat.CancelledError):
            loader.next()

    def test_two_threads_in_one_next_are_a_usage_error(self):
        # All memory is held, so that the first thread waits in next().
        with self.rows(held_patience=0) as loader:
            held = []
            ended = threading.Event()

            def take():
                try:
                    while True:
                        held.append(loader.next())
                except leat.CancelledError:
                    ended.set()

            thread = threading.Thread(target=take)
            thread.start()
            with self.assertRaisesRegex(leat.UsageError, "another thread"):
                while True:
                    held.append(loader.next())
            loader.stop()
            thread.join()
            self.assertTrue(ended.is_set())


def run(text, *arguments, as_file=None, **options):
    """A program of its own: what it is about is how processes begin and end."""
    text = textwrap.dedent(text)
    if as_file:
        as_file.write_text(text)
    program = [str(as_file)] if as_file else ["-c", text]
    return subprocess.run([sys.executable, *program, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


class Processes(Made):
    def test_the_end_of_the_interpreter_with_loaders_and_batches_alive(self):
        ended = run("""
            import asyncio, sys, threading, pyleat as leat
            loader = leat.Loader(sys.argv[1], leat.Array("npy"), batch_size=8)
            batch = next(iter(loader))
            tensor = batch["npy"]
            other = leat.Loader(sys.argv[1], leat.Array("npy"), batch_size=8)
            other._descriptor()
            cycle = [loader]; cycle.append(cycle)
            print("ends")
            """, self.at / "rows.npy")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "ends\n", ""))

    def test_a_loader_made_before_a_fork_is_refused_in_the_child_and_lives_in_the_parent(self):
        ended = run("""
            import os, sys, warnings, pyleat as leat
            warnings.simplefilter("ignore")  # Python 3.12: a process with threads forks
            loader = leat.Loader(sys.argv[1], leat.Array("npy"), batch_size=8)
            next(iter(loader))
            child = os.fork()
            if child == 0:
                try:
                    loader.next()
                    os._exit(3)
                except leat.UsageError as failure:
                    assert "fork" in str(failure)
                mine = leat.Loader(sys.argv[1], leat.Array("npy"), batch_size=8)
                assert sum(batch.valid_rows for batch in mine) == 100
                mine.stop()
                del loader
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0, status
            assert sum(batch.valid_rows for batch in loader) == 100
            """, self.at / "rows.npy")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_ctrl_c_is_answered_while_next_waits(self):
        # All memory is held, so that next() waits: only a signal can end it in time.
        ended = run("""
            import os, signal, sys, threading, time, pyleat as leat
            signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background job ignores it.
            loader = leat.Loader(sys.argv[1], leat.Array("npy"), batch_size=8, held_patience=0)
            held = []
            def interrupt():
                count = -1
                while count != len(held):
                    count = len(held)
                    time.sleep(0.3)
                global sent
                sent = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=interrupt, daemon=True).start()
            try:
                while True:
                    held.append(loader.next())
            except KeyboardInterrupt:
                took = time.monotonic() - sent
                assert took < 0.5, took
                print("interrupted")
            """, self.at / "rows.npy")
        self.assertEqual((ended.returncode, ended.stdout), (0, "interrupted\n"), ended.stderr)

    def test_a_world_that_is_said_is_not_looked_up(self):
        with unittest.mock.patch.dict(os.environ, {"WORLD_SIZE": "2"}):
            os.environ.pop("RANK", None)
            self.assertEqual(len(self.rows(world=(1, 2))), 7)
            with self.assertRaisesRegex(leat.UsageError, "RANK is not set"):
                self.rows()

    def test_spawned_processes_have_their_ranks(self):
        ended = run("""
            import sys, pyleat as leat
            loader = leat.Loader(sys.argv[1], leat.Array("npy"), global_batch_size=10, shuffle=False)
            print([each for batch in loader for each in batch.ids][:5])
            """, self.at / "rows.npy",
                    env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                         "MASTER_ADDR": "localhost", "MASTER_PORT": "1"})
        self.assertEqual(ended.stdout, "[5, 6, 7, 8, 9]\n", ended.stderr)


class Command(Made):
    """The command of the wheel, in a process of its own."""

    def setUp(self):
        if not hasattr(importlib.import_module("pyleat._leat"), "_command"):
            self.skipTest("this module was built without the command")

    def begin(self, *words, **streams):
        return subprocess.Popen([sys.executable, "-m", "pyleat", *map(str, words)], text=True, **streams)

    def test_it_loads_an_epoch_and_answers_with_its_status(self):
        with self.begin("epoch", self.at / "rows.npy", "--json", stdout=subprocess.PIPE) as running:
            said = running.communicate(timeout=60)[0]
        self.assertEqual((running.returncode, json.loads(said.splitlines()[-1])["samples"]), (0, ROWS))
        with self.begin("nonsense", stderr=subprocess.PIPE) as running:
            said = running.communicate(timeout=60)[1]
        self.assertEqual((running.returncode, said.startswith("leat: unknown command 'nonsense'")), (2, True))

    def test_a_name_that_is_no_text_is_a_file_s_name(self):
        name = bytes(self.at / "rows") + b"-\xff.npy"
        shutil.copy(self.at / "rows.npy", name)
        ended = subprocess.run([sys.executable, "-m", "pyleat", "inspect", name], capture_output=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        self.assertIn(b"100 samples", ended.stdout)

    def test_a_reader_that_ends_ends_it_as_any_command(self):
        reading, writing = os.pipe()
        os.close(reading)
        with self.begin("help", "--man", stdout=writing, stderr=subprocess.PIPE) as running:
            os.close(writing)
            said = running.communicate(timeout=60)[1]
        self.assertEqual((running.returncode, said), (128 + signal.SIGPIPE, ""))

    def test_ctrl_c_is_answered_in_order(self):
        with self.begin("epoch", self.at / "rows.npy", "--epochs", 2**32 - 1, "--progress", "/dev/stdout", stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE) as running:
            running.stdout.readline()  # It runs.
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=60)[1]
        self.assertEqual(running.returncode, 130, said)
        self.assertNotIn("Traceback", said)


class Gpu(Made):
    here = pathlib.Path("/dev/nvidiactl").exists()

    @unittest.skipIf(here, "there is a GPU here")
    def test_without_one_batches_are_on_the_host_or_it_is_an_error(self):
        with self.rows(shuffle=False, device="cuda:0") as loader:
            batch = next(iter(loader))
            self.assertEqual(batch["npy"].device, "cpu")
            self.assertEqual(numpy.from_dlpack(batch["npy"])[1, 0], 1)
        with self.assertRaises(leat.UnsupportedError) as caught:
            self.rows(device="cuda:0", device_required=True)
        self.assertIn("cuda:0", str(caught.exception))

    @unittest.skipUnless(here, "there is no GPU here")
    def test_with_one_batches_lie_on_it(self):
        with self.rows(shuffle=False, device="cuda:0") as loader:
            batch = next(iter(loader))
            self.assertEqual((batch["npy"].device, batch["npy"].__dlpack_device__()), ("cuda:0", (2, 0)))
            try:
                import torch
            except ImportError:
                return
            self.assertEqual(torch.from_dlpack(batch["npy"])[:, 0].tolist(), [float(each) for each in range(8)])


class OtherLibraries(Made):
    def test_torch_has_the_same_memory(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        with self.rows(shuffle=False) as loader:
            batch = next(iter(loader))
            one, other = torch.from_dlpack(batch["npy"]), torch.from_dlpack(batch["npy"])
            one[0, 0] = 42
            self.assertEqual(other[0, 0].item(), 42)
        with self.rows(shuffle=False, to="torch") as loader:
            tensor = next(iter(loader))["npy"]
            self.assertEqual((tensor[2, 0].item(), tensor.device.type), (2, "cpu"))
            self.assertFalse(tensor.is_pinned())
        with self.rows(shuffle=False, to="torch", pinned=True) as loader:
            tensor = next(iter(loader))["npy"]
            self.assertEqual((tensor[2, 0].item(), tensor.is_pinned()), (2, torch.cuda.is_available()))

    def test_device_cache_without_a_gpu_is_off_and_says_why(self):
        for given, why in ((0, "not asked for"), (1 << 20, "batches stay on the host")):
            with self.rows(device_cache=given) as loader:
                stats = loader.stats()
                self.assertEqual((stats["device_cache"], stats["device_cache_why"], stats["rows_from_cache"]), ("off", why, 0))
        with self.assertRaisesRegex(TypeError, "device_cache"):
            self.rows(device_cache="much")

    def test_pinned_without_a_gpu_is_pageable_and_says_why(self):
        for pinned in (False, True):
            with self.rows(pinned=pinned) as loader:
                self.assertEqual("device to copy to" not in loader.stats()["pinned_why"], pinned)
        with self.assertRaisesRegex(TypeError, "pinned"):
            self.rows(pinned=3.5)

    def test_the_data_loader_takes_what_pytorch_s_does_or_says_why_not(self):
        from pyleat.torch import DataLoader

        data = leat.open(self.at / "rows.npy")
        fields = [leat.Array("npy")]
        with self.assertWarnsRegex(UserWarning, "decode_threads="):
            loader = DataLoader(data, fields, batch_size=8, num_workers=4, drop_last=True, pin_memory=True, to="numpy")
        with loader:
            self.assertNotIn("device to copy to", loader.stats()["pinned_why"])
            self.assertEqual((len(loader), loader.batch_size), (12, 8))
            self.assertEqual([float(each["npy"][0, 0]) for each in loader][:2], [0.0, 8.0])
        with DataLoader(data, fields, 4, True, to="numpy") as loader:
            self.assertEqual(sorted(int(row[0]) for each in loader for row in each["npy"]), list(range(ROWS)))
        with DataLoader(data, fields, sampler=leat.weighted([1.0] + [0.0] * (ROWS - 1), 5), to="numpy") as loader:
            self.assertEqual([float(each["npy"][0, 0]) for each in loader], [0.0] * 5)
        with self.assertRaisesRegex(TypeError, "fields collate"):
            DataLoader(data, fields, collate_fn=list)
        with self.assertRaisesRegex(TypeError, "Order of leat"):
            DataLoader(data, fields, sampler=[1, 2])

    def test_lightning_goes_on_in_the_middle_of_an_epoch(self):
        try:
            import lightning
            import torch
        except ImportError:
            self.skipTest("Lightning is not installed")
        from lightning.pytorch.callbacks import ModelCheckpoint
        from pyleat.lightning import DataModule

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 1)
                self.seen = []

            def training_step(self, batch, index):
                self.seen.append(int(batch["npy"][0, 0]))
                return self.layer(batch["npy"]).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 1e-6)

        def seen(checkpoint=None, callbacks=()):
            model = Model()
            trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
                                        enable_model_summary=False, enable_checkpointing=bool(callbacks), callbacks=list(callbacks))
            trainer.fit(model, DataModule(lambda **rank: self.rows(seed=3, **rank)), ckpt_path=checkpoint)
            return model.seen

        saved = self.at / "checkpoints"
        whole = seen(callbacks=[ModelCheckpoint(saved, every_n_train_steps=18, save_top_k=-1, filename="at 18")])
        self.assertEqual(len(whole), 26)
        self.assertEqual(seen(checkpoint=saved / "at 18.ckpt"), whole[18:])
        with self.assertRaisesRegex(TypeError, "train=.*is a function that makes a Loader, and not 3"):
            DataModule(3)

    def test_accelerate_takes_the_data_loader_as_one_that_is_prepared(self):
        if any(importlib.util.find_spec(each) is None for each in ("torch", "accelerate")):
            self.skipTest("accelerate is not installed")
        program = """
            import json, sys
            import accelerate, pyleat as leat
            from pyleat.torch import DataLoader

            accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
            train = DataLoader(leat.open(sys.argv[1]), [leat.Array("npy")], batch_size=8, shuffle=True, seed=3)
            assert accelerator.prepare(train) is train and accelerator.prepare_data_loader(train) is train
            accelerator.register_for_checkpointing(train)

            def rows(batch):
                return batch["npy"][:, 0].int().tolist()

            seen, applied, gathered = [], [], 0
            for batch in train:
                seen += rows(batch)
                with accelerator.accumulate():
                    applied.append(accelerator.sync_gradients)
                gathered += len(accelerator.gather_for_metrics(batch["npy"]))
            assert not accelerator.gradient_state.in_dataloader
            begun = iter(train)
            next(begun)
            accelerator.save_state(sys.argv[2])
            rest = [rows(batch) for batch in begun]
            accelerator.load_state(sys.argv[2])
            again, ends = [], []
            for batch in train:
                again.append(rows(batch))
                ends.append(accelerator.gradient_state.end_of_dataloader)
            assert again == rest and ends == [False] * 5 + [True], ends
            mapped = DataLoader(leat.open(sys.argv[1]), [leat.Array("npy")], batch_size=8, map_batch=lambda batch: batch)
            ends = [mapped.end_of_dataloader for batch in mapped]
            assert ends == [False] * 6 + [True], ends
            try:
                accelerate.skip_first_batches(train, 2)
            except AttributeError as refused:
                assert "load_state_dict() goes on" in str(refused)
            else:
                raise AssertionError("skip_first_batches() was taken")
            print(json.dumps([seen, applied, gathered]))
            accelerator.end_training()
        """
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = []
        for rank in "01":
            world = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
            ranks.append(subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), self.at / "rows.npy", self.at / "accelerated"],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **world}))
            self.addCleanup(ranks[-1].kill)  # One waits for the other.
        said = [each.communicate(timeout=120) for each in ranks]
        self.assertEqual([each.returncode for each in ranks], [0, 0], said)
        seen, applied, gathered = zip(*[json.loads(out.splitlines()[-1]) for out, _ in said])
        self.assertEqual(sorted(seen[0] + seen[1]), list(range(ROWS)))
        self.assertEqual([len(each) for each in seen], [50, 50])
        # After each fourth batch, and the last one of the epoch.
        self.assertEqual(applied[0], [False] * 3 + [True] + [False] * 2 + [True])
        self.assertEqual(gathered, (ROWS, ROWS))

    def test_ranks_that_share_their_batches_have_to_be_said(self):
        from pyleat.torch import DataLoader

        class Mesh:
            mesh_dim_names = ("dp_shard", "tp")

            def size(self, axis):
                return (1, 2)[axis]

        class States(types.ModuleType):
            is_initialized = staticmethod(lambda: True)
            AcceleratorState = staticmethod(lambda: types.SimpleNamespace(device_mesh=Mesh()))

        with unittest.mock.patch.dict(sys.modules, {"accelerate.state": States("accelerate.state")}):
            with self.assertRaisesRegex(ValueError, "ranks that differ in tp alone have the same batches"):
                DataLoader(leat.open(self.at / "rows.npy"), [leat.Array("npy")])

    def test_grain_has_batches_and_goes_on_in_the_middle_of_an_epoch(self):
        if importlib.util.find_spec("grain") is None:
            self.skipTest("Grain is not installed")
        from pyleat.grain import IterDataset

        def made(**options):
            return IterDataset(self.at / "rows.npy", leat.Array("npy"), batch_size=8, shuffle=True, seed=3, **options)

        with self.rows(seed=3, shuffle=True, epochs=2, to="numpy") as loader:
            whole = [batch["npy"][:, 0].tolist() for _ in range(2) for batch in loader]
        firsts = made(epochs=2).map(lambda batch: batch["npy"][:, 0].tolist())
        self.assertEqual(list(firsts), whole)
        begun = iter(firsts)
        for _ in range(15):
            next(begun)
        state = json.loads(json.dumps(begun.get_state()))
        begun.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            next(begun)
        other = iter(firsts)
        next(other)
        other.set_state(state)
        self.assertEqual(list(other), whole[15:])
        endless = iter(made())
        self.assertEqual([next(endless)["npy"][0, 0] for _ in range(30)][:26], [each[0] for each in whole])
        endless.close()
        with self.assertRaisesRegex(leat.UsageError, "leave it out"):
            made().set_slice(slice(0, None, 2))

    def test_grain_reads_samples_one_by_one(self):
        if importlib.util.find_spec("grain") is None:
            self.skipTest("Grain is not installed")
        import grain
        from pyleat.grain import Source

        source = Source(self.at / "rows.npy", leat.Array("npy"))
        self.assertIsInstance(source, grain.sources.RandomAccessDataSource)
        self.assertEqual(len(source), ROWS)
        batches = list(grain.MapDataset.source(source).shuffle(seed=1).batch(8).to_iter_dataset())
        self.assertEqual(batches[0]["npy"].shape, (8, 8))
        self.assertEqual(sorted(row[0] for each in batches for row in each["npy"]), list(range(ROWS)))
        again = pickle.loads(pickle.dumps(source))
        self.assertEqual((repr(again), again[7]["npy"][0]), (repr(source), 7))
        lines = Source(self.at / "lines.jsonl", leat.Text("txt"), leat.Label("cls"))
        for number in (0, 1, 13):
            self.assertEqual((bytes(lines[number]["txt"]).decode(), lines[number]["cls"]), ("é" * number, number))
            self.assertEqual(set(lines[number]), {"txt", "cls"})
        with self.assertRaisesRegex(IndexError, "sample 20 of a Source of 20"):
            lines[20]
        with self.assertRaisesRegex(TypeError, "batch_size=.*Grain says"):
            Source(self.at / "rows.npy", leat.Array("npy"), batch_size=2)

    def test_a_library_that_is_not_installed_is_named_before_the_first_batch(self):
        for library in ("numpy", "torch", "jax"):
            with unittest.mock.patch.dict(sys.modules, {library: None}), \
                 self.assertRaisesRegex(ModuleNotFoundError, f"to='{library}' needs {library}, which is not installed here: pip install {library}"):
                self.rows(to=library)

    def test_jax_has_an_array(self):
        try:
            import jax  # noqa: F401
        except ImportError:
            self.skipTest("JAX is not installed")
        with self.rows(shuffle=False, to="jax") as loader:
            self.assertEqual(float(next(iter(loader))["npy"][2, 0]), 2.0)


if __name__ == "__main__":
    unittest.main()
