"""The server's prompt profiles and metaprompts, read again when their file changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from denizen.errors import InvalidInput
from denizen.ids import OrganizationId, SpaceId
from denizen.profiles.library import Library, shipped_file
from denizen.profiles.organization_presets import OrganizationPresets
from denizen.profiles.presets import Presets
from denizen.reflection import configuration
from denizen.reflection.configuration import Configuration
from denizen.storage.database import Tx
from denizen.telemetry.logs import get_logger

if TYPE_CHECKING:
    from denizen.reflection.sentiment import Classifier

log_line = get_logger(__name__)


class PromptConfig:
    """The file of presets with its add-ons, and the server's classifier."""

    def __init__(
        self,
        presets: Path | None = None,
        prompts: Path | None = None,
        classifier: Classifier | None = None,
        check_model: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`check_model` raises `InvalidInput` for the name of a model that cannot exist."""
        self.library = Library(presets, prompts)
        self.organizations = OrganizationPresets(self.library)
        self.classifier = classifier
        self.check_model = check_model
        self._read: Mapping[str, JsonValue] | None = None
        self._configuration: Configuration | None = None

    def check(self) -> None:
        """Raises `InvalidInput` if the file is invalid."""
        self.presets()
        self.configuration()

    def presets(self) -> Presets | None:
        """The server's presets; None: no profiles are chosen here."""
        return self.library.current()

    def presets_of(self, tx: Tx, organization_id: OrganizationId) -> Presets | None:
        """The presets of an organization: its own, otherwise the server's."""
        return self.organizations.of(tx, organization_id, self.presets())

    def presets_in(self, tx: Tx, space_id: SpaceId) -> Presets | None:
        """The presets of the organization that has this space."""
        return self.organizations.in_space(tx, space_id, self.presets())

    def configuration(self) -> Configuration:
        """The current quick-start profiles and metaprompts: built-in ones, and those of the server."""
        own = self.library.file()
        if self._configuration is None:
            self._configuration = _read(own)
        elif own is not self._read:
            try:
                self._configuration = _read(own)
            except InvalidInput as error:
                log_line.warning("metaprompts are wrong", path=str(self.library.path), message=str(error))
        if own is not self._read:
            for warning in self._configuration.warnings:
                log_line.warning("preset file", path=str(self.library.path), message=warning)
        self._read = own
        return self._configuration


def _read(own: Mapping[str, JsonValue]) -> Configuration:
    return configuration.read(shipped_file(), own) if own and own is not shipped_file() else _shipped()


@cache
def _shipped() -> Configuration:
    """For a server without its own file. It never changes, and reading it takes as long as opening the database."""
    return configuration.read(shipped_file(), {})
