"""A certificate for servers of tests on loopback, which vouches for itself."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class SelfSigned:
    """The certificate and its key, as files."""

    certificate: Path
    key: Path

    def of_server(self) -> ssl.SSLContext:
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.load_cert_chain(self.certificate, self.key)
        return made

    def trusted(self) -> ssl.SSLContext:
        """For clients that trust this certificate."""
        return ssl.create_default_context(cafile=self.certificate)


def self_signed(folder: Path) -> SelfSigned:
    """A certificate for 127.0.0.1."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Server of tests")])
    addresses = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    found = SelfSigned(folder / "server.pem", folder / "server.key")
    found.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return found
