"""What users see when something is wrong: what it is and what to do, and the process goes on."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cuda_ext_example
from cuda_ext_example import cust_add, my_add, rms_norm
from cuda_ext_example._opwright.library import library_ops


@pytest.fixture(autouse=True)
def the_process_goes_on():
    yield
    assert my_add(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        assert my_add(torch.ones(2).cuda(), torch.ones(2).cuda()).tolist() == [2, 2]


def test_mismatched_dtypes(add, device):
    with pytest.raises(
        RuntimeError, match=rf"{add.__name__}: a is float32 and b is float64; convert"
    ):
        add(torch.ones(2, device=device), torch.ones(2, device=device).double())


def test_shapes_that_do_not_broadcast(add, device):
    with pytest.raises(RuntimeError, match=r"shapes \[2, 3\] and \[4\] do not broadcast"):
        add(torch.ones(2, 3, device=device), torch.ones(4, device=device))


OPS = torch.ops.cuda_ext_example
CALLS = {
    "my_add": lambda x: my_add(x, x),
    "my_add op": lambda x: OPS.my_add(x, x),
    "cust_add": lambda x: cust_add(x, 1),
    "cust_add op": lambda x: OPS.cust_add(x, 1),
    "rms_norm": rms_norm,
    "rms_norm op": OPS.rms_norm,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors(call, requires_grad):
    name = call.removesuffix(" op")
    for sparse in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        with pytest.raises(RuntimeError, match=rf"{name}: only dense tensors .*\.to_dense\(\)"):
            CALLS[call](sparse.requires_grad_(requires_grad))


# torch.nested has a rule of its own for every op whose name is rms_norm.
@pytest.mark.parametrize("call", [call for call in CALLS if call != "rms_norm op"])
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors(call, layout, requires_grad):
    rows = [torch.ones(2, 4), torch.ones(3, 4)]
    nested = torch.nested.nested_tensor(rows, layout=layout, requires_grad=requires_grad)
    with pytest.raises(RuntimeError, match=r"only dense tensors .*the \.values\(\) of nested"):
        CALLS[call](nested)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_quantized_tensors(add):
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    with pytest.raises(RuntimeError, match=r"\.dequantize\(\)"):
        add(quantized, quantized)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8])
def test_a_float_for_an_integer_tensor(device, dtype):
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(
        RuntimeError, match=f"a float value cannot be added to a {name} tensor.*pass an int"
    ):
        cust_add(torch.zeros(2, dtype=dtype, device=device), 1.5)


def test_a_complex_value_for_a_real_tensor(device):
    with pytest.raises(RuntimeError, match="a complex value cannot be added to a float32 tensor"):
        cust_add(torch.zeros(2, device=device), 1j)


def test_a_value_that_is_no_number():
    with pytest.raises(TypeError, match="value must be an int, float or complex, not str"):
        cust_add(torch.zeros(2), "1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "name", "kind"),
    [
        (lambda x: (x, 1.0), "b", "float"),
        (lambda x: (None, x), "a", "NoneType"),
        (lambda x: (x, [1.0]), "b", "list"),
    ],
)
def test_an_argument_that_is_no_tensor(add, arguments, name, kind):
    message = rf"{add.__name__}: {name} must be a tensor, not {kind}; cust_add adds a number"
    with pytest.raises(TypeError, match=message):
        add(*arguments(torch.zeros(2)))


def test_a_number_plus_a_tensor_the_wrong_way_round():
    with pytest.raises(TypeError, match="cust_add: x must be a tensor, not float"):
        cust_add(1.0, torch.zeros(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2**64, 2**63, -(2**63) - 1])
def test_an_int_beyond_64_bits(value, device):
    for dtype in (torch.int64, torch.float32):
        with pytest.raises(OverflowError, match=f"{value} does not fit into 64 bits; pass it as"):
            cust_add(torch.zeros(2, dtype=dtype, device=device), value)


def test_a_tensor_with_dimensions_is_no_number():
    with pytest.raises(
        TypeError, match=r"value is a tensor of shape \[1\]; my_add and my_fast_add"
    ):
        cust_add(torch.zeros(2), torch.ones(1))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_float_tensor_for_an_integer_one(requires_grad):
    value = torch.tensor(1.5, requires_grad=requires_grad)
    with pytest.raises(RuntimeError, match="a float value cannot be added to a int64 tensor"):
        cust_add(torch.zeros(2, dtype=torch.int64), value)


def test_a_float_for_an_integer_tensor_when_compiled():
    x = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(Exception, match="a float value cannot be added to a int64 tensor"):
        torch.compile(lambda x: cust_add(x, 1.5), fullgraph=True, backend="eager")(x)


def test_more_dimensions_than_torch_allows(add):
    x = torch.zeros([1] * 30)
    with pytest.raises(RuntimeError, match="more than 25 dimensions"):
        add(x, x)


def test_mismatched_dtypes_when_compiled():
    with pytest.raises(Exception, match=r"float32 and b is torch\.float64"):
        torch.compile(my_add, fullgraph=True, backend="eager")(
            torch.ones(2), torch.ones(2).double()
        )


# --- Errors at import: each in a process of its own -----------------------------------------------


def import_with(site: Path) -> str:
    """Imports the package as it lies in `site`, before everything else; returns the error."""
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "import cuda_ext_example"],
        env=environment,
        cwd=site,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A copy of the package."""
    package = Path(cuda_ext_example.__file__).parent
    shutil.copytree(
        package, tmp_path / "cuda_ext_example", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def test_torch_missing(site: Path):
    (site / "torch.py").write_text("raise ImportError('No module named torch')")
    assert import_with(site) == (
        "ImportError: cuda_ext_example needs torch >= 2.10, and torch cannot be imported "
        "(No module named torch); pip install torch"
    )


def test_torch_too_old(site: Path):
    (site / "torch.py").write_text("__version__ = '2.9.1+cu126'")
    assert import_with(site) == (
        "ImportError: cuda_ext_example needs torch >= 2.10, and torch 2.9.1+cu126 is installed; "
        "pip install --upgrade torch"
    )


def test_library_missing(site: Path):
    (site / "cuda_ext_example/libcuda_ext_example.so").unlink()
    error = import_with(site)
    assert "has no library for this platform" in error
    assert "libcuda_ext_example.so is missing" in error


def test_library_of_another_platform(site: Path):
    library = site / "cuda_ext_example/libcuda_ext_example.so"
    content = bytearray(library.read_bytes())
    content[18:20] = (8).to_bytes(2, "little")  # e_machine: MIPS
    library.write_bytes(content)
    assert f"does not load into torch {torch.__version__}" in import_with(site)


def test_a_torch_whose_libraries_have_other_names(site: Path):
    """Debian's, without libtorch-dev."""
    (site / "torch.py").write_text(
        "import ctypes, types\n__version__ = '2.14.1'\n"
        "ops = types.SimpleNamespace(load_library=ctypes.CDLL)"
    )
    error = import_with(site)
    assert "libtorch.so: cannot open shared object file: No such file or directory; " in error
    assert error.endswith("; Debian's torch has that name in its package libtorch-dev")


def test_metadata_requires_this_torch():
    requires = importlib.metadata.requires("cuda_ext_example")
    assert requires == ["torch>=2.10"]


# The package without its __init__, so that an op can be rejected before it is registered.
WITH_A_BROKEN_OP = """
import sys, types, torch
package = types.ModuleType("cuda_ext_example")
package.__path__ = [sys.argv[1]]
sys.modules["cuda_ext_example"] = package
from cuda_ext_example._opwright import library
library.library_problems = lambda: dict.fromkeys(library.library_ops(), "is broken")
from cuda_ext_example import _ops
for name in set(library.library_ops()):
    try:
        getattr(_ops, name)(torch.ones(2, 2), torch.ones(2, 2)[0, 0])
    except RuntimeError as error:
        assert str(error).endswith("is broken"), error
        print(name)
"""


def test_ops_that_the_library_rejects_leave_the_package_importable():
    command = [sys.executable, "-c", WITH_A_BROKEN_OP, str(Path(cuda_ext_example.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == sorted(library_ops()), done.stderr
