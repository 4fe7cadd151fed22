"""A lock file for each process that runs agents, so that other processes on this machine notice when it is gone.

`<folder>/<instance>.lock` is locked with `flock` for as long as the process lives. However it ends, the system releases
the lock, and the process that takes it knows that its owner is gone: no lease needs to expire first. A process id would
not do, because ids are reused.

A lock counts only on the boot that its file names. Network file systems may keep locks from other machines, and some
systems do not identify the boot: then nothing is known, and leases expire as they do without this.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from denizen.telemetry.logs import get_logger

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

log_line = get_logger(__name__)

BOOT_FILE: Final = Path("/proc/sys/kernel/random/boot_id")
_SUFFIX: Final = ".lock"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The other instances with a lock file here, alive or gone as far as known."""

    alive: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


@dataclass
class InstanceLock:
    """The lock of this process, and a look at those of others. Everything here may fail; then nothing is known."""

    folder: Path
    instance: str
    _descriptor: int | None = field(default=None, repr=False)

    def hold(self) -> None:
        """Show other processes that this one is alive, until `release` or its end."""
        boot = _boot()
        if fcntl is None or boot is None or self._descriptor is not None:
            return
        # Under another name until it is locked: otherwise someone could find it unlocked and think that its owner is
        # gone.
        unlocked = self._path(self.instance).with_suffix(".new")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(descriptor, boot)
                unlocked.rename(self._path(self.instance))
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            log_line.warning("no lock file", folder=str(self.folder), error=error.strerror)
            return
        self._descriptor = descriptor

    def release(self) -> None:
        """Show this process as gone, and remove its file."""
        if self._descriptor is not None:
            self.remove(self.instance)
            os.close(self._descriptor)
            self._descriptor = None

    def look(self) -> Neighbours:
        """Which other instances are alive, and which are gone."""
        boot = _boot()
        alive: set[str] = set()
        gone: set[str] = set()
        if fcntl is not None and boot is not None:
            for path in self._others():
                match _is_locked(path, boot):
                    case True:
                        alive.add(path.stem)
                    case False:
                        gone.add(path.stem)
                    case None:
                        pass
        return Neighbours(frozenset(alive), frozenset(gone))

    def remove(self, instance: str) -> None:
        """Remove the lock file of an instance that is gone."""
        try:
            self._path(instance).unlink(missing_ok=True)
        except OSError as error:
            log_line.warning("lock file not removed", instance=instance, error=error.strerror)

    def _others(self) -> list[Path]:
        try:
            return [path for path in self.folder.glob(f"*{_SUFFIX}") if path.stem != self.instance]
        except OSError:
            return []

    def _path(self, instance: str) -> Path:
        return self.folder / f"{instance}{_SUFFIX}"


def _boot() -> bytes | None:
    """The id of this boot of this machine; None if the system does not give one."""
    try:
        return BOOT_FILE.read_bytes().strip() or None
    except OSError:
        return None


def _is_locked(path: Path, boot: bytes) -> bool | None:
    """Whether a process of this boot has locked the file; None if unknown."""
    assert fcntl is not None
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.read(descriptor, 100) != boot:
            return None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    else:
        return False
    finally:
        os.close(descriptor)
