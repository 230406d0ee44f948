"""The certificates that `wheelscope fit` trusts: real TLS servers on loopback, and files of
certificates."""

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import package_index
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from package_index import Index
from program import Fit

pytestmark = pytest.mark.usefixtures("scope")
NAME = "sound-1.0-py3-none-any.whl"


@dataclass
class Identity:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def identity(name: str, signer: Identity | None = None) -> Identity:
    """Makes a certificate for 127.0.0.1 signed by `signer`, or one that signs others and itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not signer, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
    )
    return Identity(builder.sign(signer.key if signer else key, hashes.SHA256()), key)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator["Serve"]:
    with ExitStack() as stack:
        yield Serve(tmp_path, stack)


@dataclass
class Serve:
    folder: Path
    stack: ExitStack

    def __call__(self, shown: Identity) -> Index:
        """Starts an index behind TLS, with one wheel."""
        chain = self.folder / "server.pem"
        private = shown.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain.write_bytes(private + shown.pem)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain)
        index = self.stack.enter_context(package_index.serve(tls))
        index.offer(NAME, {"sound.py": b""})
        return index

    def believed(self, *identities: Identity) -> str:
        path = self.folder / "believed.pem"
        path.write_bytes(b"Comments are allowed.\n" + b"\n".join(one.pem for one in identities))
        return str(path)


OTHERS = [identity(f"Other {number}") for number in range(5)]
ROOT = identity("Root")


def test_who_signed_is_found_among_others(fit: Fit, serve: Serve) -> None:
    index = serve(identity("server", ROOT))
    believed = serve.believed(*OTHERS, ROOT)
    [answer], code, said = fit("sound", "--index", index.simple, PIP_CERT=believed)
    assert (answer["take"], code) == (NAME, 0), said


def test_one_that_signed_itself_is_believed_if_it_is_in_the_file(fit: Fit, serve: Serve) -> None:
    index = serve(ROOT)
    for believed, expected in ((OTHERS, 3), ([*OTHERS, ROOT], 0)):
        _, code, said = fit("sound", "--index", index.simple, PIP_CERT=serve.believed(*believed))
        assert code == expected, said


def test_a_server_is_believed_by_its_own_certificate(fit: Fit, serve: Serve) -> None:
    shown = identity("server", ROOT)
    index = serve(shown)
    _, code, said = fit("sound", "--index", index.simple, PIP_CERT=serve.believed(*OTHERS, shown))
    assert code == 0, said


def test_another_of_the_same_name_does_not_do(fit: Fit, serve: Serve) -> None:
    namesake = identity("Root")
    index = serve(identity("server", namesake))
    [answer], code, _ = fit("sound", "--index", index.simple, PIP_CERT=serve.believed(ROOT))
    assert (answer["take"], code) == (None, 3)


def test_nobody_is_believed_without_certificates(fit: Fit, serve: Serve, tmp_path: Path) -> None:
    index = serve(identity("server", ROOT))
    for path in (serve.believed(), str(tmp_path / "absent.pem")):
        _, code, said = fit("sound", "--index", index.simple, PIP_CERT=path)
        assert code == 3
        assert f"no certificate can be read from {path}" in said
