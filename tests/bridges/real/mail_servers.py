"""A real Dovecot and a real Postfix, from Debian, with folders of their own. They need root.

Mail for `harbour.test` and `pier.test` is delivered by Postfix to Dovecot, which keeps a mailbox for each address.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import smtplib
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, cast

from tests.bridges.certificates import self_signed
from tests.bridges.mail_server import ADDRESS, PASSWORD, TRUSTED

PROGRAMS = ("dovecot", "postfix")

_DOVECOT = """\
base_dir = {run}
protocols = imap lmtp
listen = 127.0.0.1
log_path = {folder}/dovecot.log
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{key}
disable_plaintext_auth = no
mail_location = maildir:{folder}/mail/%u
mail_uid = mail
mail_gid = mail
first_valid_uid = 1
auth_mechanisms = plain login xoauth2
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {folder}/oauth2.conf
}}
passdb {{
  driver = passwd-file
  args = {folder}/passwords
}}
userdb {{
  driver = static
  args = allow_all_users=yes uid=mail gid=mail home={folder}/mail/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
service auth {{
  inet_listener {{
    address = 127.0.0.1
    port = {auth}
  }}
}}
"""

_OAUTH2 = """\
introspection_mode = post
introspection_url = {tokens}/introspect
username_attribute = username
active_attribute = active
active_value = true
"""

_MAIN = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
maillog_file = {folder}/postfix.log
maillog_file_prefixes = {folder}
myhostname = mx.harbour.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
virtual_mailbox_domains = harbour.test pier.test
virtual_transport = lmtp:inet:127.0.0.1:{lmtp}
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{auth}
smtpd_tls_security_level = may
smtpd_tls_cert_file = {certificate}
smtpd_tls_key_file = {key}
smtpd_client_restrictions =
smtpd_recipient_restrictions = permit_mynetworks, reject
default_destination_concurrency_limit = 1
minimal_backoff_time = 2s
queue_run_delay = 2s
"""

_MASTER = """\
127.0.0.1:{smtp} inet n - n - - smtpd
127.0.0.1:{smtps} inet n - n - - smtpd
  -o smtpd_tls_wrappermode=yes
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


class MailServers:
    """Both, on loopback. They encrypt, with a certificate of their own."""

    password = PASSWORD.replace(" ", "_")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.imap, self.imaps, self.smtp, self.smtps, lmtp, auth, self.tokens_port = _free_ports(7)
        # The path of a socket is at most about a hundred characters long.
        self._run = Path(f"/tmp/denizen-dovecot-{os.getpid()}")
        for name in ("mail", "data", "queue", "postfix"):
            (folder / name).mkdir()
        shutil.chown(folder / "mail", "mail", "mail")
        shutil.chown(folder / "data", "postfix")
        self.certificate = self_signed(folder)
        self.certificate.certificate.chmod(0o644)
        values: dict[str, object] = {"folder": folder, "run": self._run, "lmtp": lmtp, "auth": auth}
        values |= {"imap": self.imap, "imaps": self.imaps, "smtp": self.smtp, "smtps": self.smtps}
        values |= {"certificate": self.certificate.certificate, "key": self.certificate.key}
        values |= {"tokens": f"http://127.0.0.1:{self.tokens_port}"}
        (folder / "dovecot.conf").write_text(_DOVECOT.format(**values))
        (folder / "oauth2.conf").write_text(_OAUTH2.format(**values))
        (folder / "postfix" / "main.cf").write_text(_MAIN.format(**values))
        (folder / "postfix" / "master.cf").write_text(_MASTER.format(**values))
        self.set_password(self.password)
        self._dovecot: subprocess.Popen[bytes] | None = None
        self._log_begin = 0

    def set_password(self, password: str) -> None:
        """The password of the bridge's mailbox is this from now on."""
        new = self.folder / "passwords.new"
        new.write_text(f"{ADDRESS}:{{PLAIN}}{password}\n")
        new.chmod(0o644)
        new.rename(self.folder / "passwords")

    def start(self) -> None:
        config = str(self.folder / "dovecot.conf")
        self._dovecot = subprocess.Popen(["/usr/sbin/dovecot", "-F", "-c", config], start_new_session=True)
        try:
            self._postfix("start")
            for port in (self.imap, self.imaps, self.smtp, self.smtps):
                _wait_for(port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._dovecot is not None:
            self._dovecot.terminate()
            self._dovecot.wait()
            self._dovecot = None
        self._postfix("stop", check=False)
        shutil.rmtree(self._run, ignore_errors=True)

    def kill(self) -> None:
        """End every process of both at once. What they have taken is on the disk."""
        if self._dovecot is not None:
            _kill_all(self._dovecot.pid)
            self._dovecot.wait()
            self._dovecot = None
        master = int((self.folder / "queue" / "pid" / "master.pid").read_text())
        _kill_all(master)

    def empty(self) -> None:
        """Nobody has any mail, and none is on its way."""
        subprocess.run(["/usr/sbin/postsuper", "-c", str(self.folder / "postfix"), "-d", "ALL"], check=True)
        while any(
            each.is_file() for name in ("incoming", "active") for each in (self.folder / "queue" / name).rglob("*")
        ):
            time.sleep(0.05)  # What is being delivered just now.
        for each in (self.folder / "mail").iterdir():
            shutil.rmtree(each)
        self._log_begin = len((self.folder / "postfix.log").read_text())

    def handed_over(self) -> Counter[str]:
        """How often the bridge has handed each mail to Postfix, by Message-ID, since the mailboxes were empty."""
        log = (self.folder / "postfix.log").read_text()[self._log_begin :]
        return Counter(re.findall(r"postfix/cleanup\[\d+\]: \w+: message-id=(<[^>]*\.denizen@[^>]*>)", log))

    def _postfix(self, what: str, *, check: bool = True) -> None:
        command = ["/usr/sbin/postfix", "-c", str(self.folder / "postfix"), what]
        subprocess.run(command, check=check, capture_output=True)

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "address": ADDRESS,
            "imap": f"imap://127.0.0.1:{self.imap}",
            "smtp": f"smtp://127.0.0.1:{self.smtp}",
            "password": "${MAIL}",
            "auth_server": TRUSTED,
            "allow_private": ["127.0.0.1"],
            **more,
        }

    def send(self, what: EmailMessage) -> None:
        """Somebody at the pier sends a mail."""
        with smtplib.SMTP("127.0.0.1", self.smtp, timeout=30) as smtp:
            smtp.send_message(what)

    def mails(self, address: str) -> list[EmailMessage]:
        """What is in a mailbox, in the order of arrival."""
        folder = self.folder / "mail" / address
        found = sorted(
            (each for name in ("new", "cur") for each in (folder / name).glob("*")), key=lambda each: each.name
        )
        return [cast("EmailMessage", message_from_bytes(each.read_bytes(), policy=policy.default)) for each in found]


def _kill_all(leader: int) -> None:
    """Kill a process and all that it has started, and wait until they are gone."""
    members = [
        each
        for each in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        if _group_of(each) == leader
    ]
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    while any(_group_of(each) == leader for each in members):
        time.sleep(0.01)


def _group_of(pid: int) -> int | None:
    """The process group of a process that runs."""
    try:
        state, _, group, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == "Z" else int(group)


@contextmanager
def running_mail_servers() -> Iterator[MailServers]:
    """Both, in a folder that their users can enter: pytest's are for its own user."""
    with tempfile.TemporaryDirectory(prefix="denizen-mail-") as folder:
        Path(folder).chmod(0o755)
        servers = MailServers(Path(folder))
        servers.start()
        try:
            yield servers
        finally:
            servers.stop()


def installed() -> bool:
    """Whether both programs are here, after they were installed where that is possible."""
    if os.getuid() != 0:
        return False
    if not all(shutil.which(each, path="/usr/sbin:/usr/bin") for each in PROGRAMS) and shutil.which("apt-get"):
        packages = ["dovecot-imapd", "dovecot-lmtpd", "postfix"]
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        subprocess.run(command, env=quiet, check=False, capture_output=True)
    return Path("/usr/lib/dovecot/lmtp").exists() and shutil.which("postfix", path="/usr/sbin") is not None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing listens on {port}")
