"""Stand-ins for the release's two ONNX networks: of the same inputs and outputs, and of no weights.

Codes are which mel band is the loudest of 40 ms; a speaker is the mean of the spectrum. The files are written as
onnx.proto (of ONNX 1.17) numbers their fields; there is no library for it among those of the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FLOAT, INT32, INT64 = 1, 6, 7
SPEAKER_SIZE = 80
"""Numbers the stand-in tells speakers apart by."""


def write(folder: Path) -> None:
    """Write both files into ``folder``."""
    codes = _node("MaxPool", ["feats"], ["loudest"], _ints("kernel_shape", [4]), _ints("strides", [4]))
    codes += _node("ArgMax", ["loudest"], ["indices"], _int("axis", 1), _int("keepdims", 0))
    (folder / "speech_tokenizer_v2_25hz.onnx").write_bytes(_model(
        codes, [("feats", FLOAT, [1, 128, "T"]), ("feats_length", INT32, [1])], ("indices", INT64, [1, "N"])))
    speaker = _node("ReduceMean", ["input"], ["output"], _ints("axes", [1]), _int("keepdims", 0))
    (folder / "campplus.onnx").write_bytes(_model(
        speaker, [("input", FLOAT, [1, "T", SPEAKER_SIZE])], ("output", FLOAT, [1, SPEAKER_SIZE])))


def _model(nodes: bytes, inputs: Sequence[tuple[str, int, list[int | str]]],
           output: tuple[str, int, list[int | str]]) -> bytes:
    graph = nodes + _text(2, "stand-in") + b"".join(_field(11, _value(*each)) for each in inputs)
    graph += _field(12, _value(*output))
    return _number(1, 8) + _field(7, graph) + _field(8, _text(1, "") + _number(2, 13))


def _node(kind: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes) -> bytes:
    return _field(1, b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in outputs)
                  + _text(4, kind) + b"".join(_field(5, each) for each in attributes))


def _ints(name: str, values: Sequence[int]) -> bytes:
    return _text(1, name) + b"".join(_number(8, value) for value in values) + _number(20, 7)


def _int(name: str, value: int) -> bytes:
    return _text(1, name) + _number(3, value) + _number(20, 2)


def _value(name: str, kind: int, shape: list[int | str]) -> bytes:
    sizes = b"".join(_field(1, _number(1, each) if isinstance(each, int) else _text(2, each)) for each in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, sizes)))


def _text(field: int, value: str) -> bytes:
    return _field(field, value.encode())


def _field(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
