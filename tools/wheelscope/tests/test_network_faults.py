"""Whatever a server does, `wheelscope fit` says what is wrong, answers the rest, and ends. It trusts a
TLS server on loopback by the certificates that it is told of."""

import base64
import datetime
import ipaddress
import socket
import ssl
import sys
import time
from pathlib import Path

import package_index
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from package_index import Fault, Index
from program import Fit, measure, run
from sample_wheels import NAME


@pytest.fixture
def stocked(index: Index, module: bytes) -> Index:
    """Makes an index with one wheel of a few megabytes, and a pure one."""
    index.offer(NAME, {"sample.so": module})
    name = "sound-1.0-py3-none-any.whl"
    index.offer(name, {"sound.py": b""})
    return index


PAGE_FAULTS: dict[str, tuple[Fault, str]] = {
    "404": (package_index.status(404), "the server has no such file (HTTP 404)"),
    "401": (package_index.status(401), "login NAME password WORD` into ~/.netrc"),
    "500": (package_index.status(500), "tried 3 times"),
    "redirect-loop": (
        package_index.status(302, Location="/simple/sample/"),
        "10) redirects followed",
    ),
    "redirect-to-a-file": (package_index.status(302, Location="file:///etc/passwd"), "rotocol"),
    "redirect-nowhere": (package_index.status(302), "redirects without saying where"),
    "endless": (package_index.endless, "longer than"),
    "silent": (package_index.silent, "tried 3 times"),
    "no-index": (
        lambda handler: handler.send_whole(b"hello", {"Content-Type": "text/plain"}),
        "is this a package index?",
    ),
    "half-a-page": (
        lambda handler: handler.send_whole(b'{"files": [', {"Content-Type": "application/json"}),
        "no list of files",
    ),
}


@pytest.mark.parametrize("fault", PAGE_FAULTS)
def test_faults_of_an_index(fit: Fit, stocked: Index, fault: str) -> None:
    stocked.faults["/simple/sample/"], words = PAGE_FAULTS[fault]
    [broken], code, said = fit("sample")
    assert code == 3
    assert words in said
    assert broken["take"] is None
    both, code, said = fit("sample", "sound")
    assert code == 3
    assert words in said
    assert [one["name"] for one in both["nearest"]] == ["sound"]


FILE_FAULTS: dict[str, tuple[Fault, str]] = {
    "404": (package_index.status(404), "the server has no such file"),
    "cut-off": (package_index.cut_off, "cut off"),
    "changing": (package_index.changing, "changed while it was read"),
    "other-range": (package_index.other_range, "the server sends others"),
    "other-bytes": (package_index.other_bytes, "not a zip archive"),
    "endless": (package_index.endless, "longer than"),
}


@pytest.mark.parametrize("fault", FILE_FAULTS)
@pytest.mark.parametrize("deep", [False, True], ids=["part", "whole"])
def test_faults_of_a_file(fit: Fit, stocked: Index, fault: str, deep: bool) -> None:
    stocked.faults[f"/files/{NAME}"], words = FILE_FAULTS[fault]
    if deep and fault in ("changing", "other-range", "other-bytes"):
        words = {"changing": "", "other-range": "cut off", "other-bytes": "SHA-256"}[fault]
    [broken], code, said = fit("sample", *(["--deep"] if deep else []))
    if not words:
        assert broken["take"] == NAME  # one answer cannot change
        return
    assert code == 3
    assert words in said
    assert broken["take"] is None


def test_a_server_without_ranges_is_read_whole(fit: Fit, stocked: Index) -> None:
    stocked.faults[f"/files/{NAME}"] = package_index.no_ranges
    [answer], code, _ = fit("sample")
    [file] = answer["files"]
    assert (code, file["verdict"], file["read"]) == (0, "works", file["size"])
    assert file["notes"] == ["its server gives no ranges: all of it was read"]


def test_another_file_than_the_index_says(fit: Fit, stocked: Index) -> None:
    body = stocked.files[f"/files/{NAME}"]
    for other, words, said in (
        (body[::-1], ["--deep"], "is not the file that the index means"),
        (body + b"more", [], "the index says"),
    ):
        stocked.files[f"/files/{NAME}"] = other
        _, code, errors = fit("sample", *words)
        assert code == 3
        assert said in errors


def test_an_overloaded_server_is_asked_again(fit: Fit, stocked: Index) -> None:
    stocked.faults[f"/files/{NAME}"] = package_index.fails_at_first
    [answer], code, _ = fit("sample")
    assert (code, answer["take"]) == (0, NAME)


def test_redirects_are_followed(bare_fit: Fit, stocked: Index) -> None:
    stocked.faults["/here/sample/"] = package_index.status(301, Location="/simple/sample/")
    stocked.files["/else"] = stocked.files[f"/files/{NAME}"]
    stocked.faults[f"/files/{NAME}"] = package_index.status(302, Location="/else")
    [answer], code, _ = bare_fit("sample", "--index", stocked.url + "/here/")
    assert (code, answer["take"]) == (0, NAME)


def test_credentials_of_netrc(fit: Fit, stocked: Index, tmp_path: Path) -> None:
    word = "Basic " + base64.b64encode(b"me:secret").decode()
    stocked.faults["/simple/sample/"] = package_index.password(word)
    assert fit("sample")[1] == 3
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    assert fit("sample")[1] == 0


def test_credentials_are_not_shown(bare_fit: Fit, stocked: Index) -> None:
    stocked.faults["/simple/sample/"] = package_index.status(401)
    address = stocked.simple.replace("http://", "http://me:secret@")
    _, code, said = bare_fit("sample", "--index", address)
    assert code == 3
    assert "secret" not in said


@pytest.mark.parametrize("beside", [(), ("sound",)])
def test_a_folder_without_the_project_does_not_answer_for_an_index(
    fit: Fit, stocked: Index, tmp_path: Path, beside: tuple[str, ...]
) -> None:
    stocked.faults["/simple/sample/"] = package_index.status(500)
    _, code, said = fit("sample", *beside, "--find-links", str(tmp_path))
    assert code == 3
    assert "tried 3 times" in said


def test_nobody_listens(bare_fit: Fit) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/simple/"
        _, code, said = bare_fit("sample", "--index", address)
    assert code == 3
    assert "tried 3 times" in said


@pytest.mark.parametrize(("command", "project"), [("fit", "sample"), ("atlas", "torch")])
def test_a_proxy_is_asked(index: Index, tmp_path: Path, command: str, project: str) -> None:
    (tmp_path / "list").write_text("sample\n")
    words = {
        "fit": ["sample", "--python", sys.executable],
        "atlas": [str(tmp_path / "list"), "-o", str(tmp_path / "atlas")],
    }[command]
    where = ["--index", "http://index.example/simple/", "--proxy", index.url]
    run(command, *words, *where, code=3, env={"HOME": str(tmp_path)})  # it has no such page
    assert (f"http://index.example/simple/{project}/", "") in index.asked


def test_an_endless_answer_costs_little(fit: Fit, stocked: Index) -> None:
    stocked.faults["/simple/sample/"] = package_index.endless
    start = time.monotonic()
    fit("sample")
    assert time.monotonic() - start < 30
    _, peak = measure("fit", "--timeout=2", "sample", f"--index={stocked.simple}")
    assert peak < 512 << 20


# --- Certificates -----------------------------------------------------------------------------------
Identity = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def identity(name: str, signer: Identity | None = None) -> Identity:
    """Makes a certificate for 127.0.0.1 signed by `signer`, or one that signs others and itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=not signer, path_length=None), critical=True)
        .add_extension(here, critical=False)
    )
    return builder.sign(signer[1] if signer else key, hashes.SHA256()), key


def pem(*identities: Identity) -> bytes:
    return b"\n".join(shown.public_bytes(serialization.Encoding.PEM) for shown, _ in identities)


OTHERS = [identity(f"Other {number}") for number in range(5)]
ROOT = identity("Root")
SERVER = identity("server", ROOT)
# What the server shows, what is believed, and what fit complains of.
CERTIFICATES: dict[str, tuple[Identity, list[Identity], str]] = {
    "signed by one of several": (SERVER, [*OTHERS, ROOT], ""),
    "signed by itself": (ROOT, OTHERS, "SSL"),
    "signed by itself, and believed": (ROOT, [*OTHERS, ROOT], ""),
    "the server's own": (SERVER, [*OTHERS, SERVER], ""),
    "another of the same name": (identity("server", identity("Root")), [ROOT], "SSL"),
    "none": (SERVER, [], "no certificate can be read from {}"),
}


@pytest.mark.parametrize("case", CERTIFICATES)
def test_whose_certificate_is_believed(bare_fit: Fit, tmp_path: Path, case: str) -> None:
    (shown, key), believed, complaint = CERTIFICATES[case]
    chain, file = tmp_path / "server.pem", tmp_path / "believed.pem"
    encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(*encoding, serialization.NoEncryption())
    chain.write_bytes(private + pem((shown, key)))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(chain)
    file.write_bytes(b"Comments are allowed.\n" + pem(*believed))
    with package_index.serve(tls) as index:
        index.offer("sound-1.0-py3-none-any.whl", {"sound.py": b""})
        for path in (file, tmp_path / "absent.pem") if not believed else (file,):
            _, code, said = bare_fit("sound", "--index", index.simple, PIP_CERT=str(path))
            assert code == (3 if complaint else 0), said
            assert complaint.format(path) in said
