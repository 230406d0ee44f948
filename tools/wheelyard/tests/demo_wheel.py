"""Makes small real wheels for the tests."""

import base64
import hashlib
import zipfile
from pathlib import Path

EPOCH = (2020, 2, 2, 0, 0, 0)


def make_wheel(
    folder: Path,
    name: str = "demo_ext",
    version: str = "1.0",
    text: str = "",
    module: str = "",
    beside: tuple[str, ...] = (),
) -> Path:
    """A real wheel of one module, and of files `beside` it; another `text` gives other bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {text}\n"
    files = {
        f"{name}.py": module or f"text = {text!r}\n",
        **dict.fromkeys(beside, "anything"),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=")
        record.append(f"{path},sha256={digest.decode()},{len(content)}\n")
    files[f"{info}/RECORD"] = "".join(record) + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, EPOCH), content)
    return wheel
