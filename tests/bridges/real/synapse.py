"""A real Synapse with SQLite on loopback, in a folder of its own, that can be killed and started again."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bridges.real.environment import server_python
from tests.servers import free_port

SERVER = "test"
AS_TOKEN, HS_TOKEN = "as-token-of-the-tests", "hs-token-of-the-tests"
SECONDS_TO_START = 120
_SHARED = "shared-secret-of-the-tests"
_NO_LIMIT = {"per_second": 10_000, "burst_count": 10_000}


class Synapse:
    """The server. `push` is where it sends the application service's transactions."""

    def __init__(self, folder: Path, push: str | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._tokens: dict[str, str] = {}
        self._write(push)

    def _write(self, push: str | None) -> None:
        registration = {
            "id": "denizen",
            "url": push,
            "as_token": AS_TOKEN,
            "hs_token": HS_TOKEN,
            "sender_localpart": "denizen",
            "rate_limited": False,
            "receive_ephemeral": True,
            "namespaces": {
                "users": [{"exclusive": True, "regex": f"@denizen_.*:{SERVER}"}],
                "aliases": [{"exclusive": True, "regex": f"#denizen_.*:{SERVER}"}],
                "rooms": [],
            },
        }
        listener = {
            "port": self.port,
            "type": "http",
            "bind_addresses": ["127.0.0.1"],
            "resources": [{"names": ["client"]}],
        }
        limits = ["rc_message", "rc_registration", "rc_admin_redaction", "rc_room_creation"]
        config: dict[str, Any] = {
            "server_name": SERVER,
            "report_stats": False,
            "pid_file": str(self.folder / "pid"),
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(self.folder / "synapse.db")}},
            "log_config": str(self.folder / "log.yaml"),
            "media_store_path": str(self.folder / "media"),
            "signing_key_path": str(self.folder / "signing.key"),
            "registration_shared_secret": _SHARED,
            "bcrypt_rounds": 4,
            "trusted_key_servers": [],
            "federation_domain_whitelist": [],
            "caches": {"sync_response_cache_duration": "0s"},
            "app_service_config_files": [str(self.folder / "denizen.yaml")],
            "rc_login": {"address": _NO_LIMIT, "account": _NO_LIMIT, "failed_attempts": _NO_LIMIT},
            "rc_joins": {"local": _NO_LIMIT, "remote": _NO_LIMIT},
            "rc_invites": {"per_room": _NO_LIMIT, "per_user": _NO_LIMIT, "per_issuer": _NO_LIMIT},
            **dict.fromkeys(limits, _NO_LIMIT),
        }
        log = {
            "version": 1,
            "handlers": {"file": {"class": "logging.FileHandler", "filename": str(self.folder / "log")}},
        }
        # JSON is YAML.
        (self.folder / "denizen.yaml").write_text(json.dumps(registration))
        (self.folder / "homeserver.yaml").write_text(json.dumps(config))
        (self.folder / "log.yaml").write_text(json.dumps({**log, "root": {"level": "WARNING", "handlers": ["file"]}}))
        seed = base64.b64encode(os.urandom(32)).decode().rstrip("=")
        (self.folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")

    def start(self) -> None:
        command = [str(server_python()), "-m", "synapse.app.homeserver", "-c", str(self.folder / "homeserver.yaml")]
        self._process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        ends = time.monotonic() + SECONDS_TO_START
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > ends:
                    assert self._process.stderr is not None
                    self._process.kill()
                    raise RuntimeError(self._process.stderr.read().decode()[-3_000:]) from None
                time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None

    # Its people

    def person(self, name: str) -> str:
        """The access token of somebody with this name, who is there then."""
        if name not in self._tokens:
            nonce = self._call("GET", "/_synapse/admin/v1/register")["nonce"]
            local = name.split()[0].lower()
            fields = [nonce, local, "password", "notadmin"]
            mac = hmac.new(_SHARED.encode(), "\0".join(fields).encode(), hashlib.sha1).hexdigest()
            wanted = {"nonce": nonce, "username": local, "password": "password", "admin": False, "mac": mac}
            told = self._call("POST", "/_synapse/admin/v1/register", body=wanted)
            self._tokens[name] = told["access_token"]
            self.call(name, "PUT", f"/profile/@{local}:{SERVER}/displayname", {"displayname": name})
        return self._tokens[name]

    def call(self, who: str, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Ask the client API as somebody."""
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self._call(method, f"/_matrix/client/v3{path}{asked}", token=self.person(who), body=body)

    def _call(self, method: str, path: str, *, token: str | None = None, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def room(self, alias: str, *members: str) -> str:
        """The id of a new public room with this alias, and these people in it."""
        owner, *others = members
        wanted = {"room_alias_name": alias, "preset": "public_chat", "name": alias}
        room = self.call(owner, "POST", "/createRoom", wanted)["room_id"]
        for each in others:
            self.call(each, "POST", f"/join/{urllib.parse.quote(room)}", {})
        return room

    def send(self, who: str, room: str, kind: str, content: Any, transaction: str) -> str:
        path = f"/rooms/{urllib.parse.quote(room)}/send/{kind}/{transaction}"
        return self.call(who, "PUT", path, content)["event_id"]

    def timeline(self, who: str, room: str, after: str | None = None) -> tuple[list[dict[str, Any]], str | None]:
        """Everything in the room, oldest first, and where the next call goes on."""
        events: list[dict[str, Any]] = []
        while True:
            query = {"dir": "f", "limit": "500"} | ({"from": after} if after else {})
            told = self.call(who, "GET", f"/rooms/{urllib.parse.quote(room)}/messages", **query)
            events += told["chunk"]
            if "end" not in told or told["end"] == after:
                return events, after
            after = told["end"]

    def texts(self, who: str, room: str, by: str) -> list[str]:
        """What is to be read in the room of users whose id begins so: as it was changed, without what was deleted."""
        found: dict[str, str] = {}
        for event in self.timeline(who, room)[0]:
            content = event["content"]
            if event["type"] != "m.room.message" or not event["sender"].startswith(by) or "body" not in content:
                continue
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") != "m.replace":
                found[event["event_id"]] = content["body"]
            elif relation["event_id"] in found:
                found[relation["event_id"]] = content["m.new_content"]["body"]
        return list(found.values())


@contextmanager
def running_synapse(folder: Path, push: str | None = None) -> Iterator[Synapse]:
    """A Synapse, until the block ends."""
    synapse = Synapse(folder, push)
    synapse.start()
    try:
        yield synapse
    finally:
        synapse.kill()
