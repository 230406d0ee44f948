"""Tests who belongs to a cluster: without keys nothing starts, even on a single machine."""

import ssl
from pathlib import Path

import pytest
from wheelyard.problem import Problem
from wheelyard.run.cluster import keys


def test_the_address_of_a_scheduler() -> None:
    assert keys.address("tls://host:8786") == "tls://host:8786"
    assert keys.address("localhost:8786") == "tls://localhost:8786"


@pytest.mark.parametrize("given", ["http://host:80", "tls://host", "tls://host:port", "nothing"])
def test_no_address(given: str) -> None:
    with pytest.raises(Problem, match="is not the address of a scheduler"):
        keys.address(given)


@pytest.mark.parametrize("host", ["10.0.0.1", "0.0.0.0", "127.0.0.1", "localhost", "[::1]"])
def test_without_keys_nothing_starts(host: str, tmp_path: Path) -> None:
    """This includes a single machine: every local user reaches its ports."""
    with pytest.raises(Problem, match=r"neither encrypted nor checked.*`wheelyard cluster-keys`"):
        keys.security(f"tcp://{host}:8786", tmp_path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    keys.make(tmp_path / "keys")
    (tmp_path / "keys" / keys.MEMBER).chmod(mode)
    with pytest.raises(Problem, match="not this user's alone"):
        keys.security("tls://127.0.0.1:8786", tmp_path / "keys")


def test_tls_needs_keys_and_they_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    with pytest.raises(Problem, match=r"member\.pem is missing; `wheelyard cluster-keys"):
        keys.security("tls://host:8786", folder)
    said = keys.make(folder)
    assert "wheelyard worker tls://" in "\n".join(said)
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    settings = keys.security("tls://host:8786", folder)
    assert settings.require_encryption
    assert settings.get_connection_args("client")["ssl_context"].verify_mode == ssl.CERT_REQUIRED
    with pytest.raises(Problem, match="has keys already"):
        keys.make(folder)
