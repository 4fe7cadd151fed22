"""Reads a Dockerfile and says what we would not want in it, where no engine is there to build it."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INSTRUCTIONS = frozenset(
    {
        *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"),
        *("LABEL", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
    }
)
"""Those that we use. ADD fetches and unpacks on its own; the others are of the past."""


@dataclass(frozen=True)
class Instruction:
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """What it is given, without its options."""
        return [word for word in self.rest.split() if not word.startswith("--")]

    def option(self, name: str) -> str | None:
        found = re.search(rf"--{name}=(\S+)", self.rest)
        return found[1] if found else None


def instructions(text: str) -> list[Instruction]:
    """The instructions in order, each on one line, without comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [Instruction(*(line.split(maxsplit=1) + [""])[:2]) for line in joined.splitlines()]


def problems(text: str, root: Path) -> list[str]:
    """Everything that is wrong with the Dockerfile for the tree at `root`."""
    found = instructions(text)
    return [*_unknown(found), *_images(found), *_copies(found, root), *_last_stage(found)]


def _unknown(found: list[Instruction]) -> Iterator[str]:
    yield from (f"{each.name} is no instruction of ours" for each in found if each.name not in INSTRUCTIONS)
    if not found or found[0].name not in ("FROM", "ARG"):
        yield "it begins with no image"


def _images(found: list[Instruction]) -> Iterator[str]:
    arguments = dict(each.rest.split("=", 1) for each in found if each.name == "ARG" and "=" in each.rest)
    for each in found:
        if each.name == "FROM":
            image = re.sub(r"\$\{(\w+)\}", lambda name: arguments.get(name[1], ""), each.words[0])
            _, _, tag = image.partition(":")
            if tag in ("", "latest"):
                yield f"the image {each.words[0]} has no version"


def _copies(found: list[Instruction], root: Path) -> Iterator[str]:
    ignore = (root / ".dockerignore").read_text().splitlines() if (root / ".dockerignore").exists() else []
    stages = {each.words[2] for each in found if each.name == "FROM" and len(each.words) == 3}
    for each in found:
        if each.name != "COPY":
            continue
        stage = each.option("from")
        if stage is not None:
            if stage not in stages:
                yield f"nothing can be copied from {stage}, which is no stage"
            continue
        for source in each.words[:-1]:
            if not (root / source).exists():
                yield f"{source} is not there to be copied"
            elif is_ignored(source, ignore):
                yield f"{source} is kept out by .dockerignore"


def is_ignored(path: str, lines: list[str]) -> bool:
    """Whether the last line of .dockerignore that is about this path, or a folder it is in, keeps it out."""
    parts = Path(path).parts
    names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    ignored = False
    for line in (line.strip() for line in lines):
        if line and not line.startswith("#") and any(fnmatch.fnmatch(name, line.lstrip("!")) for name in names):
            ignored = not line.startswith("!")
    return ignored


def _last_stage(found: list[Instruction]) -> Iterator[str]:
    starts = [place for place, each in enumerate(found) if each.name == "FROM"]
    last = {each.name: each for each in found[starts[-1] if starts else 0 :]}
    user = last["USER"].rest.partition(":")[0] if "USER" in last else "root"
    if not user.isdecimal() or int(user) == 0:
        yield f"it runs as {user}, not as a number above 0"
    if "HEALTHCHECK" not in last:
        yield "nothing tells whether it is well"
    for name in ("ENTRYPOINT", "CMD"):
        if name in last and not _is_exec_form(last[name].rest):
            yield f"{name} starts a shell, which would keep signals to itself"


def _is_exec_form(rest: str) -> bool:
    try:
        return isinstance(json.loads(rest), list)
    except ValueError:
        return False
