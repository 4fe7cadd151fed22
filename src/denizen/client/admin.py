"""Administration over HTTP: tokens, keys, forgetting, files, the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime
from pathlib import Path

import httpx2
from pydantic import JsonValue

from denizen.client.connection import LONG, Connection, iso, path_to, refusal, those_given
from denizen.errors import ServerError
from denizen.shapes.access import KeyList, KeyOut, ListedToken, LoginCreated, TokenCreated, TokenList
from denizen.shapes.audit import AuditPage, OpeningOut
from denizen.shapes.definitions import Applied, DocumentOut
from denizen.shapes.forgetting import ReceiptOut, ReceiptPage
from denizen.shapes.mcp_servers import SignInBegun, SignInServerList, SignInServerOut
from denizen.shapes.people import PictureOut, PicturesOut
from denizen.shapes.portability import ImportedOut


class Administration(Connection):
    """Tokens and keys, forgetting, export and import, definition files."""

    async def forget(self, kind: str, id: str, *, also_replies: bool = False, dry_run: bool = False) -> ReceiptOut:
        """Forgets a message, memory, person or space everywhere."""
        wanted = {"kind": kind, "id": id, "also_replies": also_replies, "dry_run": dry_run}
        return await self._ask(ReceiptOut, "POST", "/api/forget", json=wanted)

    async def receipts(self, *, before: str | None = None, limit: int = 50) -> ReceiptPage:
        return await self._ask(ReceiptPage, "GET", "/api/receipts", params=those_given(before=before, limit=limit))

    async def keys(self) -> list[KeyOut]:
        return (await self._ask(KeyList, "GET", "/api/keys")).keys

    async def set_key(self, name: str, value: str, *, whose: str = "organization") -> KeyOut:
        """Stores a key, encrypted: the organization's, or the caller's own (`me`)."""
        return await self._ask(KeyOut, "PUT", path_to("keys", name), json={"value": value, "whose": whose})

    async def delete_key(self, name: str, *, whose: str = "organization") -> None:
        await self._tell("DELETE", path_to("keys", name), params={"whose": whose})

    async def mcp_servers(self) -> list[SignInServerOut]:
        """Returns the MCP servers that an admin signs in to."""
        return (await self._ask(SignInServerList, "GET", "/api/mcp-servers")).servers

    async def begin_mcp_sign_in(self, name: str) -> SignInBegun:
        """Begins to sign in to an MCP server; `url` is opened in a browser."""
        return await self._ask(SignInBegun, "POST", path_to("mcp-servers", name, "sign-in"))

    async def finish_mcp_sign_in(self, answer: str) -> SignInServerOut:
        """Completes a sign-in, with the whole address to which the browser was sent back."""
        return await self._ask(SignInServerOut, "POST", "/api/mcp-servers/answer", json={"answer": answer})

    async def tokens(self, entity: str | None = None, *, everyone: bool = False) -> list[ListedToken]:
        """Returns the caller's tokens, another's, or those of everyone for whom the caller may create some."""
        asked = those_given(entity=entity, everyone=everyone or None)
        return (await self._ask(TokenList, "GET", "/api/tokens", params=asked)).tokens

    async def create_token(
        self,
        name: str,
        *,
        entity: str | None = None,
        role: str | None = None,
        expires_at: datetime | None = None,
        speaks_for_others: bool = False,
    ) -> TokenCreated:
        """Creates a token for the caller or, if permitted, for another. Its secret is shown only once."""
        wanted = those_given(
            name=name,
            entity=entity,
            role=role,
            expires_at=iso(expires_at),
            speaks_for_others=speaks_for_others or None,
        )
        return await self._ask(TokenCreated, "POST", "/api/tokens", json=wanted)

    async def rotate_token(self, token_id: str) -> TokenCreated:
        return await self._ask(TokenCreated, "POST", path_to("tokens", token_id, "rotate"))

    async def revoke_token(self, token_id: str) -> None:
        await self._tell("DELETE", path_to("tokens", token_id))

    async def create_login(self, entity: str | None = None) -> LoginCreated:
        """Creates a link that signs a browser in, once."""
        return await self._ask(LoginCreated, "POST", "/api/logins", json=those_given(entity=entity))

    async def apply(
        self, documents: Iterable[tuple[str, Mapping[str, JsonValue]]], *, dry_run: bool = False
    ) -> Applied:
        """Applies the documents of definition files; each comes with its location, which errors name."""
        told = [{"place": place, "document": dict(document)} for place, document in documents]
        return await self._ask(
            Applied, "POST", "/api/apply", json={"documents": told, "dry_run": dry_run}, timeout=LONG
        )

    async def document(self, agent: str) -> Mapping[str, JsonValue]:
        """Returns the agent as a definition document; secrets are replaced by their names."""
        return (await self._ask(DocumentOut, "GET", path_to("agents", agent, "document"))).document

    def export_agent(self, agent: str) -> AsyncGenerator[str]:
        """Yields the lines of a file with the agent and its whole history."""
        return self._lines(path_to("agents", agent, "export"))

    def export_space(self, space_id: str) -> AsyncGenerator[str]:
        """Yields the lines of a file with the space and its messages."""
        return self._lines(path_to("spaces", space_id, "export"))

    async def import_file(self, path: Path, *, handle: str | None = None, name: str | None = None) -> ImportedOut:
        """Imports a file: all of it or nothing. An agent is suspended until it is resumed."""
        asked, headers = those_given(handle=handle, name=name), {"Content-Type": "application/jsonl"}
        return await self._ask(
            ImportedOut, "POST", "/api/import", params=asked, headers=headers, content=_parts(path), timeout=LONG
        )

    async def pictures(self) -> dict[str, str]:
        """The addresses of the pictures of people and agents, by id."""
        return (await self._ask(PicturesOut, "GET", "/api/pictures")).pictures

    async def set_picture(self, entity_id: str, data: bytes, *, media_type: str = "image/jpeg") -> PictureOut:
        """Sets the caller's own picture or, for admins, that of an agent."""
        headers = {"Content-Type": media_type}
        return await self._ask(
            PictureOut, "PUT", path_to("entities", entity_id, "picture"), headers=headers, content=data
        )

    async def remove_picture(self, entity_id: str) -> None:
        """Removes the caller's own picture or, for admins, that of an agent."""
        await self._tell("DELETE", path_to("entities", entity_id, "picture"))

    async def audit(
        self,
        *,
        by: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> AuditPage:
        """Returns who changed what, newest first."""
        asked = those_given(by=by, kind=kind, since=iso(since), until=iso(until), before=before, limit=limit)
        return await self._ask(AuditPage, "GET", "/api/audit", params=asked)

    async def open_private_space(self, space_id: str, reason: str) -> OpeningOut:
        """Opens the private space to the owner for an hour; its members are told."""
        return await self._ask(OpeningOut, "POST", path_to("spaces", space_id, "open"), json={"reason": reason})

    async def _lines(self, path: str) -> AsyncGenerator[str]:
        line = b""
        try:
            async with self._http.stream("GET", path, timeout=LONG) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise refusal(response)
                # Bytes, because texts may hold other characters that some take for a line break.
                rest = b""
                async for part in response.aiter_bytes():
                    *whole, rest = (rest + part).split(b"\n")
                    for line in whole:
                        yield f"{line.decode()}\n"
        except httpx2.RequestError as error:
            raise self._unreachable(error) from error
        if not line.startswith(b'{"row":"end"'):
            raise ServerError(
                "The export is incomplete: something was forgotten meanwhile, or the connection broke. Export again."
            )


async def _parts(path: Path) -> AsyncGenerator[bytes]:
    with path.open("rb") as file:
        while part := await asyncio.to_thread(file.read, 65_536):
            yield part
