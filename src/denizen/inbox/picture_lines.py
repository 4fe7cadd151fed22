"""The line with which a picture enters the log."""

from __future__ import annotations

from denizen.files import storing
from denizen.files.storing import File
from denizen.inbox.format import quoted_name
from denizen.models.pictures import Picture
from denizen.storage.database import Tx


def picture_of(tx: Tx, file: File) -> Picture | None:
    """The picture, if the file is one that can be shown."""
    read = storing.reading_of(tx, file)
    if read.width is None or read.height is None:
        return None
    return Picture(quoted_name(file.name), read.width, read.height, file.id)
