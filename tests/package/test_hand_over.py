"""Each condition of the fast path is needed: without it, its case here goes wrong.

A process removes one condition before the ops are registered, runs the case, and compares it with
what torch.add gives. With every condition in place each case is right. All these processes are forks
of one that has imported torch, which takes longer than any case.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import needs_gpu

import cuda_ext_example
from cuda_ext_example._opwright import fast

PACKAGE = Path(cuda_ext_example.__file__).parent

# The package without its __init__, so that a condition can be taken away before it is used.
PROGRAM = """
import importlib, json, os, sys, types, warnings
import torch, torch._dynamo, torch.export
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
warnings.simplefilter("ignore")

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

def outcomes(removal, cases):
    package = types.ModuleType("cuda_ext_example")
    package.__path__ = [sys.argv[1]]
    sys.modules["cuda_ext_example"] = package
    names = {**globals(), "_torch": importlib.import_module("cuda_ext_example._opwright.registration")}
    names |= {"x": torch.ones(3), "y": torch.full((3,), 5.0)}
    exec(removal, names)
    my_add = importlib.import_module("cuda_ext_example._add").my_add
    for text in cases:
        exec("def case(add):\\n    " + text, names)
        try:
            ours = names["case"](my_add)
        except Exception as error:
            ours = error
        yield "right" if str(ours) == str(names["case"](torch.add)) else f"wrong: {ours}"

for removal, cases in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        print(json.dumps(list(outcomes(removal, cases))), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"failed: {removal}")
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
    "((a.requires_grad or b.requires_grad) and torch.is_grad_enabled())": "return gradient(Module(add))",
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


IS_PLAIN = [
    "((a.requires_grad or b.requires_grad) and torch.is_grad_enabled())",
    "forward_ad._current_level >= 0",
    *("has_torch_function_variadic(a, b)", "is_dynamo_compiling()"),
]


def without_question(question: str) -> str:
    kept = [asked for asked in IS_PLAIN if asked != question]
    return (
        "from torch.overrides import has_torch_function_variadic\n"
        "from torch.compiler import is_dynamo_compiling\n"
        f"_torch.is_plain = lambda a, b: not ({' or '.join(kept)})"
    )


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str]]:
    """What came of all cases with every condition in place, and of one without each of the conditions."""
    keys = [key for key in CASES if "CUDA" not in key or torch.cuda.is_available()]
    trials = {"": ("", [*(CASES[key] for key in keys), *QUESTIONS.values()])}
    trials |= {key: (f"del _torch.fast.HAND_OVER[{key!r}]", [CASES[key]]) for key in keys}
    trials |= {asked: (without_question(asked), [case]) for asked, case in QUESTIONS.items()}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(PACKAGE)],
        input=json.dumps(list(trials.values())),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(trials, map(json.loads, done.stdout.splitlines()), strict=True))


def test_with_all_of_them_every_case_is_right(outcomes):
    assert set(outcomes[""]) == {"right"}, outcomes[""]


def test_every_key_has_a_case():
    assert set(CASES) == set(fast.HAND_OVER)


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[needs_gpu] if "CUDA" in key else []) for key in CASES]
)
def test_without_a_key_its_case_is_wrong(outcomes, key):
    assert "wrong" in outcomes[key][0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_a_question_its_case_is_wrong(outcomes, question):
    assert "wrong" in outcomes[question][0]


def test_the_questions_are_those_that_are_asked():
    source = (PACKAGE / "_opwright/fast.py").read_text()
    body = source[source.index("def is_plain") : source.index("def is_differentiated")]
    for question in IS_PLAIN:
        assert question in body
    assert body.count(" or ") == len(IS_PLAIN)


def test_plain_autograd_asks_what_else_is_going_on():
    """A leaf that a transform captures requires a gradient, of which not only autograd knows."""
    leaf = torch.ones(3, requires_grad=True)
    out = torch.vmap(lambda row: row * cuda_ext_example.my_add(row, leaf))(torch.ones(2, 3))
    out.sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]
    assert torch.func.grad(lambda x: cuda_ext_example.my_add(x, leaf).sum())(
        torch.ones(3)
    ).tolist() == [1, 1, 1]
