"""A TLS server on the loopback address that can misbehave in chosen ways."""

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Speak = Callable[[socket.socket], None]
"""Answers on a connection after its request was read."""


@dataclass
class TlsServer:
    """`requests`: the bytes of each connection; `over` is set when the test has finished."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """A URL of the server that contains a secret."""
        return f"https://127.0.0.1:{self.port}/services/T0001/B0001/s3cr3ts3cr3t"


@contextmanager
def tls_server(
    folder: Path,
    speak: Speak,
    *,
    before_tls: Callable[[socket.socket], None] | None = None,
    name: str = "127.0.0.1",
    expired: bool = False,
) -> Iterator[TlsServer]:
    """Serves one connection after the other; its certificate is `folder`/cert.pem.

    `name` is the address in the certificate. `before_tls` is called with each connection before its
    handshake, and may break it.
    """
    certificate = folder / "cert.pem"
    certificate.write_bytes(_certificate(name, expired=expired))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        server = TlsServer(listening.getsockname()[1])

        def serve() -> None:
            while not server.over.is_set():
                with suppress(TimeoutError):
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        _serve(connection, context, server, speak, before_tls)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            thread.join()


def _serve(
    connection: socket.socket,
    context: ssl.SSLContext,
    server: TlsServer,
    speak: Speak,
    before_tls: Callable[[socket.socket], None] | None,
) -> None:
    if before_tls is not None:
        before_tls(connection)
    with context.wrap_socket(connection, server_side=True) as secured:
        server.requests.append(b"")
        while not _is_whole(server.requests[-1]):
            part = secured.recv(4096)
            if not part:
                return
            server.requests[-1] += part
        speak(secured)


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0
    )
    return bool(end) and len(body) >= length


@cache
def _certificate(name: str, *, expired: bool) -> bytes:
    """Returns a key and a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    begins = now - dt.timedelta(days=9)
    ends = now + dt.timedelta(days=-1 if expired else 1)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.IPAddress(ipaddress.ip_address(name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)
