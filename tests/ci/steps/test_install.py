"""Installing from an index: from TestPyPI only our package, and on the host's network only where it must be."""

import pytest
from wheelyard.steps import install


@pytest.mark.parametrize("name", ["embedded", "own", "testpypi", "pypi"])
def test_on_testpypi_nothing_but_the_package_is_taken(name: str) -> None:
    command = install.pip_install(name, "https://index.example/simple/", "demo==1.0")
    assert ("--no-deps" in command.split()) == (name == "testpypi")
    assert command.split()[-1] == "demo==1.0"


def test_the_hosts_network_is_for_an_index_on_this_machine() -> None:
    assert install.network("http://127.0.0.1:3141/root/x/+simple/") == ["--network=host"]
    assert install.network("https://index.example/simple/") == []
