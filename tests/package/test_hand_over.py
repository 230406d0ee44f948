"""Each condition of the fast path is needed: without it, its case here goes wrong.

A process removes one condition before the ops are registered, runs the case, and compares it with
what torch.add gives. With every condition in place each case is right.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import needs_gpu

import cuda_ext_example
from cuda_ext_example import _torch

PACKAGE = Path(cuda_ext_example.__file__).parent

# The package without its __init__, so that a condition can be taken away before it is used.
CASE = """
import importlib, sys, types, warnings
import torch
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
warnings.simplefilter("ignore")
package = types.ModuleType("cuda_ext_example")
package.__path__ = [{package!r}]
sys.modules["cuda_ext_example"] = package
_torch = importlib.import_module("cuda_ext_example._torch")
{removal}
my_add = importlib.import_module("cuda_ext_example._add").my_add

def gradient(f):
    a, b = torch.ones(3, requires_grad=True), torch.full((3,), 5.0)
    f(a, b).sum().backward()
    return a.grad

class Module(torch.nn.Module):
    def __init__(self, add):
        super().__init__()
        self.add = add

    def forward(self, a, b):
        return a * self.add(a, b)

class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        Seen.by = function.__name__
        return super().__torch_function__(function, types, args, kwargs)

x, y = torch.ones(3), torch.full((3,), 5.0)

{cases}

for case in cases:
    try:
        ours = case(my_add)
    except Exception as error:
        ours = error
    print("right" if str(ours) == str(case(torch.add)) else f"wrong: {{ours}}")
"""

CASES = {
    "FuncTorchDynamicLayerFrontMode": (
        "return torch.func.grad(lambda x: torch.vmap(lambda r: add(r, r))(x).sum())(x)"
    ),
    "PythonDispatcher": "return gradient(torch.export.export(Module(add), (x, y)).module())",
    "PythonTLSSnapshot": "return gradient(make_fx(Module(add))(x, y))",
    "Tracer": "return gradient(torch.jit.trace(Module(add), (x, y)))",
    "AutocastCPU": 'with torch.autocast("cpu"): return add(x.bfloat16(), y)',
    "AutocastCUDA": 'with torch.autocast("cuda"): return add(x.cuda().half(), y.cuda())',
    "Meta": 'return add(x.to("meta"), y.to("meta"))',
}

# What Python itself asks before the fast path is taken.
QUESTIONS = {
    "a.requires_grad or b.requires_grad": "return gradient(Module(add))",
    "forward_ad._current_level >= 0": """
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(add(forward_ad.make_dual(x, y), y)).tangent""",
    "has_torch_function_variadic(a, b)": """
    add(x.as_subclass(Seen), y)
    return Seen.by == add.__name__""",
    "is_dynamo_compiling()": """
    graphs = []
    torch.compile(add, backend=lambda graph, _: graphs.append(graph.code) or graph)(x, y)
    return "._op" in graphs[0] or "._my_add" in graphs[0]""",
}


def run(removal: str, *cases: str) -> list[str]:
    """What came of each case."""
    functions = [f"@cases.append\ndef case(add):\n    {case}" for case in cases]
    code = CASE.format(
        package=str(PACKAGE), removal=removal, cases="\n".join(["cases = []", *functions])
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_with_all_of_them_every_case_is_right():
    cases = [case for key, case in CASES.items() if "CUDA" not in key or torch.cuda.is_available()]
    cases += QUESTIONS.values()
    assert run("", *cases) == ["right"] * len(cases)


def test_every_key_has_a_case():
    assert set(CASES) == set(_torch.HAND_OVER)


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[needs_gpu] if "CUDA" in key else []) for key in CASES]
)
def test_without_a_key_its_case_is_wrong(key):
    assert "wrong" in run(f"del _torch.HAND_OVER[{key!r}]", CASES[key])[0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_a_question_its_case_is_wrong(question):
    asked = question.split(" or ")
    kept = [q for q in IS_PLAIN if q not in asked]
    removal = (
        "from torch.overrides import has_torch_function_variadic\n"
        "from torch.compiler import is_dynamo_compiling\n"
        f"_torch.is_plain = lambda a, b: not ({' or '.join(kept)})"
    )
    assert "wrong" in run(removal, QUESTIONS[question])[0]


IS_PLAIN = [
    *("a.requires_grad", "b.requires_grad", "forward_ad._current_level >= 0"),
    *("has_torch_function_variadic(a, b)", "is_dynamo_compiling()"),
]


def test_the_questions_are_those_that_are_asked():
    source = (PACKAGE / "_torch.py").read_text()
    body = source[source.index("def is_plain") : source.index("def is_differentiated")]
    for question in IS_PLAIN:
        assert question in body
    assert body.count(" or ") == len(IS_PLAIN) - 1


def test_plain_autograd_asks_what_else_is_going_on():
    """A leaf that a transform captures requires a gradient, of which not only autograd knows."""
    leaf = torch.ones(3, requires_grad=True)
    out = torch.vmap(lambda row: row * cuda_ext_example.my_add(row, leaf))(torch.ones(2, 3))
    out.sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    assert torch.func.grad(lambda x: cuda_ext_example.my_add(x, leaf).sum())(
        torch.ones(3)
    ).tolist() == [1, 1, 1]
