"""Makes small real wheels for the tests, and serves them."""

import base64
import functools
import hashlib
import http.server
import os
import random
import struct
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

EPOCH = (2020, 2, 2, 0, 0, 0)


def make_wheel(
    folder: Path,
    name: str = "demo_ext",
    version: str = "1.0",
    text: str = "",
    module: str = "",
    beside: tuple[str, ...] = (),
    gpus: tuple[str, ...] = (),
    pythons: str = "",
    more: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Makes a real wheel of one module, with further files named in `beside` or given in `more`; another `text` gives
    other bytes. With `gpus` it also has a library with code for them."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {text}\n"
    metadata += f"Requires-Python: {pythons}\n" if pythons else ""
    tag = f"py3-none-linux_{os.uname().machine}" if gpus else "py3-none-any"
    texts = {
        f"{name}.py": module or f"text = {text!r}\n",
        **dict.fromkeys(beside, "anything"),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    files = {path: content.encode() for path, content in texts.items()} | more
    if gpus:
        command = ["cc", "-shared", "-x", "c", "-", "-o", folder / "lib.so"]
        subprocess.run(command, input=device_code(*gpus), text=True, check=True)
        files["libdemo.so"] = (folder / "lib.so").read_bytes()
    record = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        record.append(f"{path},sha256={digest.decode()},{len(content)}\n")
    files[f"{info}/RECORD"] = ("".join(record) + f"{info}/RECORD,,\n").encode()
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, EPOCH), content)
    return wheel


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Yields the address of the index in the folder's simple/."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()


def device_code(*gpus: str) -> str:
    """Returns a fat binary as C source, with native code for each GPU, and PTX for a GPU with +PTX. The code is random
    bytes."""
    body = b""
    for gpu in gpus:
        arch = int(gpu.removesuffix("+PTX").replace(".", ""))
        for kind in (1, 2) if gpu.endswith("+PTX") else (2,):
            code = random.Random(f"{gpu} {kind}").randbytes(64000)
            body += struct.pack("<HHIQ12xI32x", kind, 0x101, 64, len(code), arch) + code
    binary = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    return (
        '__attribute__((section(".nv_fatbin"), used, aligned(8)))\n'
        f"static const unsigned char device_code[] = {{{','.join(map(str, binary))}}};\n"
    )
