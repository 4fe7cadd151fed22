"""Pictures in requests. Pure.

The log stores a picture as a line of text, a part of its own: `[picture "photo.jpg" 1568x1045, file:…]`. That line is
what a model reads that does not see. For one that sees, the picture itself is put behind the line on the way out, in a
copy: what is stored never changes, and the same line always brings the same bytes, so the prefix stays cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final, cast

from denizen.models.location import is_openai

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart
    from pydantic_ai.models import Model

MARK: Final = "[picture "
_LINE: Final = re.compile(r'\[picture ("[^"\n]*") (\d{1,5})x(\d{1,5}), file:([0-9a-f-]{36})\]')
_SEEING: Final = re.compile(
    r"vl\b|-vl-|vision|llava|pixtral|gemma-?3|gemma-?4|minicpm-v|moondream|llama-?4|omni|internvl|multimodal",
    re.IGNORECASE,
)
"""Names of models on servers of one's own that see. Servers do not say, and a profile is chosen by the name."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that the log names."""

    name: str
    """In quotation marks."""
    width: int
    height: int
    file_id: str

    def line(self) -> str:
        """The line for the log."""
        return f"{MARK}{self.name} {self.width}x{self.height}, file:{self.file_id}]"

    def pointer(self) -> str:
        """The line that stays of it when the window is made smaller."""
        about = f"{self.name} {self.width}x{self.height}"
        return f'[a picture was here: {about}; read_entry("file:{self.file_id}") shows it]'


def picture_in(text: object) -> Picture | None:
    """The picture, if this text is such a line and nothing else."""
    if not isinstance(text, str) or not text.startswith(MARK):
        return None
    found = _LINE.fullmatch(text)
    return None if found is None else Picture(found[1], int(found[2]), int(found[3]), found[4])


def first_picture(text: str) -> Picture | None:
    """The picture whose line this text begins with."""
    return picture_in(text.partition("\n")[0])


def pictures_of(message: ModelMessage) -> list[Picture]:
    """The pictures of a message of the log."""
    if message.kind != "request":
        return []
    # A part by itself: what other people wrote is never all of one.
    found = (picture_in(part.content) for part in message.parts if part.part_kind == "user-prompt")
    return [each for each in found if each is not None]


def without_picture(part: ModelRequestPart) -> ModelRequestPart:
    """The part; of a picture, the line that says where it is."""
    picture = picture_in(part.content) if part.part_kind == "user-prompt" else None
    return part if picture is None else replace(cast("Any", part), content=picture.pointer())


def with_pictures(message: ModelMessage, data: Mapping[str, bytes], media_type: str) -> ModelMessage:
    """The message as a model gets it that sees; `data` has the bytes by file. One that is gone stays a line."""
    from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

    assert isinstance(message, ModelRequest)
    parts: list[Any] = []
    for part in message.parts:
        picture = picture_in(part.content) if isinstance(part, UserPromptPart) else None
        if picture is not None and picture.file_id in data:
            shown = [picture.line(), BinaryContent(data[picture.file_id], media_type=media_type)]
            parts.append(replace(cast("UserPromptPart", part), content=shown))
        else:
            parts.append(part)
    return replace(message, parts=parts)


# Tokens


def _anthropic(width: int, height: int) -> int:
    return min(ceil(width / 28) * ceil(height / 28), 1_568)


def _openai(width: int, height: int) -> int:
    """85, and 170 for each tile of 512 pixels, after fitting it into 2,048 and its shorter edge into 768."""
    scale = min(1.0, 2_048 / max(width, height))
    scale *= min(1.0, 768 / max(min(width, height) * scale, 1))
    return 85 + 170 * ceil(width * scale / 512) * ceil(height * scale / 512)


TOKENS: Final[Mapping[str, Callable[[int, int], int]]] = {"anthropic": _anthropic, "openai": _openai}
"""What providers say that a picture of this size costs."""


def picture_tokens(width: int, height: int) -> int:
    """The tokens of a picture: the most that any provider counts. What is reported corrects it, as with text."""
    return max(count(width, height) for count in TOKENS.values())


# Models


def sees(model: Model) -> bool:
    """Whether the model can be sent pictures. Pydantic AI sends them to models that cannot see, too."""
    if model.system in _OURS:
        return bool(getattr(model, "sees", False))
    if model.system in ("openai", "ollama", "vllm") and not is_openai(model.base_url):
        return _SEEING.search(model.model_name) is not None
    return bool(cast("dict[str, Any]", model.profile).get("supports_image_input", True))


_OURS: Final = frozenset({"demo", "scripted", "local"})
