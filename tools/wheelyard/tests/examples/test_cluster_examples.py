"""Set-ups of a cluster, checked as far as it goes without one: Slurm's script, Kubernetes' manifest by its schema."""

import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from wheelyard import arguments

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MANIFEST = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What wheelyard makes of a command line."""
    monkeypatch.setattr(sys, "argv", words)
    return vars(arguments.parse())


def test_the_slurm_script_starts_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    script = subprocess.run(
        [sys.executable, EXAMPLES / "slurm.py", "tls://login:8786"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "#SBATCH --cpus-per-task=16" in script
    (line,) = (line for line in script.splitlines() if "-m wheelyard" in line)
    environment = (
        "SLURM_JOB_NAME=w SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ID=7 TMPDIR=/scratch HOME=/home/me"
    )
    words = subprocess.run(
        ["bash", "-c", f"{environment}; printf '%s\\n' {line}"], capture_output=True, text=True
    ).stdout.splitlines()
    given = parsed(words[2:], monkeypatch)
    assert (given["address"], given["name"], given["jobs"]) == ("tls://login:8786", "w-3", 16)
    assert given["folder"] == Path("/scratch/wheelyard-7")
    assert given["keys"] == Path("/home/me/.config/wheelyard/cluster")


@pytest.mark.parametrize(
    "part", MANIFEST, ids=lambda part: f"{part['kind']}-{part['metadata']['name']}"
)
def test_the_manifest_is_valid(part: dict[str, object]) -> None:
    kubernetes_validate.validate(part, "1.37", strict=True)


def test_a_wrong_manifest_is_not() -> None:
    broken = yaml.safe_load(yaml.safe_dump(MANIFEST[1]).replace("containers:", "container:"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.37", strict=True)


def test_the_manifests_commands_are_wheelyards(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [p["spec"]["template"]["spec"] for p in MANIFEST if p["kind"] == "Deployment"]
    commands = [c["args"] for s in specs for c in s["containers"] if c["args"][0] == "wheelyard"]
    found = [parsed(words, monkeypatch) for words in commands]
    assert [given["command"] for given in found] == ["scheduler", "worker"]
    assert {given["keys"] for given in found} == {Path("/keys")}
