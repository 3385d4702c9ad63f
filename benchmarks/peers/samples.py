"""What the loaders are measured on: facts about the photographs, and what is made of them for those that read no folders."""

import hashlib
import io
import os
import struct
import tarfile


def listed(folder):
    """[(file, class)] of a folder of class folders, in the order of their names."""
    classes = sorted(each for each in folder.iterdir() if each.is_dir())
    return [(file, label) for label, of in enumerate(classes) for file in sorted(of.iterdir()) if file.is_file()]


def jpeg_size(data):
    """Width and height, from the first start-of-frame; None where there is none."""
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def facts(files):
    pixels, size = 0, 0
    for file, _label in files:
        data = file.read_bytes()
        width, height = jpeg_size(data) or (0, 0)
        pixels += width * height
        size += len(data)
    return {
        "count": len(files),
        "classes": len({label for _, label in files}),
        "bytes": size,
        "mean_bytes": size / len(files),
        "mean_megapixels": pixels / len(files) / 1e6,
    }


def fingerprint(files, *what):
    told = hashlib.sha256(repr(what).encode())
    for file, label in files:
        told.update(f"{file}:{file.stat().st_size}:{file.stat().st_mtime_ns}:{label}\n".encode())
    return told.hexdigest()[:16]


def add(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def write_shards(files, folder, count):
    """WebDataset's: NAME.jpg and NAME.cls, the samples dealt out over the shards."""
    for shard in range(count):
        with tarfile.open(folder / f"shard-{shard:03}.tar", "w") as archive:
            for index in range(shard, len(files), count):
                file, label = files[index]
                add(archive, f"{index:08}.jpg", file.read_bytes())
                add(archive, f"{index:08}.cls", str(label).encode())


def write_repeated(files, path, images):
    """One tar of JPEGs, the photographs over and over until there are `images`."""
    with tarfile.open(path, "w") as archive:
        for index in range(max(images, len(files))):
            add(archive, f"{index:08}.jpg", files[index % len(files)][0].read_bytes())


def write_tokens(folder, tokens):
    """tokens.bin as nanoGPT's prepare.py writes it, and tokens-llmc.bin with llm.c's header; random, of u16."""
    header = struct.pack("<256i", 20240520, 1, tokens, *[0] * 253)
    with open(folder / "tokens.bin", "wb") as plain, open(folder / "tokens-llmc.bin", "wb") as with_header:
        with_header.write(header)
        left = 2 * tokens
        while left > 0:
            some = os.urandom(min(left, 1 << 24))
            plain.write(some)
            with_header.write(some)
            left -= len(some)
