"""Reads and writes safetensors files with NumPy alone: 8 bytes little-endian header length, a JSON header, raw tensors.

Format: https://github.com/huggingface/safetensors
"""

import json
import struct

import numpy

DTYPES = {"F32": numpy.float32, "F64": numpy.float64, "I32": numpy.int32, "I64": numpy.int64, "U8": numpy.uint8}
NAMES = {numpy.dtype(dtype): name for name, dtype in DTYPES.items()}


def write(path, tensors):
    """Writes a dictionary from names to arrays, sorted by name."""
    header, chunks, at = {}, [], 0
    for name in sorted(tensors):
        # Not ascontiguousarray, which turns a scalar into a vector of one element.
        array = numpy.asarray(tensors[name], order="C")
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        chunks.append(array.tobytes())
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read(path):
    """Returns a dictionary from names to arrays."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(content[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return tensors
