#!/usr/bin/env python3
"""Decodes photo packs, written from docs/internals/photo-pack.md alone: photo_pack_reference.py PACK OUT

OUT gets the coefficients as i16, little-endian: rows of MCUs, MCUs, blocks, each 64 in natural order. Needs NumPy.
"""
import struct
import sys

import numpy as np

CRC_TABLE = []
for byte in range(256):
    crc = byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    CRC_TABLE.append(crc)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def zigzag():
    places = sorted(((y + x, y if (y + x) % 2 else x, 8 * y + x) for y in range(8) for x in range(8)))
    return np.array([place for _, _, place in places])


ZIGZAG = zigzag()


def check(good, words):
    if not good:
        raise SystemExit("photo pack: " + words)


def nibbles(data, count):
    data = np.frombuffer(data, np.uint8)
    return np.stack([data & 15, data >> 4], 1).reshape(-1)[:count]


def components_of(jpeg_head, components, mcu_blocks):
    """The component of each block of an MCU, from the frame header."""
    at = 2
    while True:
        check(jpeg_head[at] == 0xFF, "no marker where one should be")
        marker = jpeg_head[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        length = struct.unpack_from(">H", jpeg_head, at + 2)[0]
        if marker in (0xC0, 0xC1):
            break
        at += 2 + length
    count = jpeg_head[at + 9]
    check(count == components, "another number of components")
    if count == 1:
        return [0]
    order = []
    for i in range(count):
        sampling = jpeg_head[at + 11 + 3 * i]
        order += [i] * ((sampling >> 4) * (sampling & 15))
    check(len(order) == mcu_blocks, "another number of blocks")
    return order


def read_row(data, columns, order):
    blocks = columns * len(order)
    at = 0
    counts = []
    for _ in range(6):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        counts.append(value)
    map_nibbles, values, sizes, n_bytes, wide, wide_dc = counts

    def take(count):
        nonlocal at
        part = data[at:at + count]
        check(len(part) == count, "a row that is too short")
        at += count
        return part

    lengths = nibbles(take((blocks + 1) // 2), blocks).astype(int)
    lengths[lengths == 15] = 16
    dc = np.frombuffer(take(blocks), np.int8).astype(np.int64)
    maps = nibbles(take((map_nibbles + 1) // 2), map_nibbles)
    signs = np.frombuffer(take(2 * ((values + 7) // 8)), np.uint8).reshape(-1, 2)
    small = nibbles(take((sizes + 1) // 2), sizes).astype(np.int64)
    escaped = np.frombuffer(take(n_bytes), np.uint8).astype(np.int64)
    wide_values = np.frombuffer(take(2 * wide), "<i2").astype(np.int64)
    wide_differences = np.frombuffer(take(2 * wide_dc), "<i2").astype(np.int64)
    check(at == len(data), "a row that is too long")
    check(lengths.sum() == map_nibbles, "maps of another length")

    negative = np.unpackbits(signs[:, 0], bitorder="little")[:values].astype(bool)
    above_1 = np.unpackbits(signs[:, 1], bitorder="little")[:values].astype(bool)
    check(above_1.sum() == sizes and (small == 15).sum() == n_bytes, "sizes that do not add up")
    check((escaped == 255).sum() == wide and (dc == -128).sum() == wide_dc, "wide values that do not add up")
    size = small + 2
    size[small == 15] = escaped + 17
    value = np.ones(values, np.int64)
    value[above_1] = size
    value[negative] *= -1
    is_wide = np.zeros(values, bool)
    is_wide[np.flatnonzero(above_1)[np.flatnonzero(small == 15)[escaped == 255]]] = True
    value[is_wide] = wide_values
    dc[dc == -128] = wide_differences

    out = np.zeros((blocks, 64), np.int16)
    bits = np.unpackbits(maps.reshape(-1, 1), axis=1, bitorder="little")[:, :4].reshape(-1)
    bit = done = 0
    sums = [0, 0, 0]
    for block in range(blocks):
        own = np.flatnonzero(bits[bit:bit + 4 * lengths[block]]) + 1
        bit += 4 * lengths[block]
        out[block, ZIGZAG[own]] = value[done:done + len(own)]
        done += len(own)
        component = order[block % len(order)]
        sums[component] = (sums[component] + dc[block] + 32768) % 65536 - 32768
        out[block, 0] = sums[component]
    check(done == values, "another number of values")
    return out


def main(pack_path, out_path):
    pack = open(pack_path, "rb").read()
    check(pack[:8] == b"\x89FJPG\r\n\x1a", "not one")
    (version, head_bytes, tail_bytes, components, mcu_blocks, _, _, columns, rows, _, _, all_bytes,
     head_sum) = struct.unpack_from("<3I4B6I", pack, 8)
    check(version == 1 and all_bytes == len(pack), "of another version, or cut off")
    before = 48 + head_bytes + tail_bytes + 8 * rows
    check(crc32c(pack[:44]) ^ crc32c(pack[48:before]) == head_sum, "its head is damaged")
    order = components_of(pack[48:48 + head_bytes], components, mcu_blocks)
    begin = before
    with open(out_path, "wb") as out:
        for row in range(rows):
            end, row_sum = struct.unpack_from("<2I", pack, before - 8 * rows + 8 * row)
            data = pack[begin:before + end]
            check(crc32c(data) == row_sum, f"row {row} is damaged")
            out.write(read_row(data, columns, order).astype("<i2").tobytes())
            begin = before + end
    check(begin == len(pack) - 32, "rows that do not end where the pack does")


if __name__ == "__main__":
    main(*sys.argv[1:])
