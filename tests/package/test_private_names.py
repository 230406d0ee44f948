"""Without any private name of torch that the fast layer uses, and without all of them, results stay the same.

Each trial is a fork of one process that has imported torch: it takes names away from torch, sees the fast layer fail
to import, gives the names back for torch's own use, imports the package, and compares cases with torch's own ops.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_ext_example._opwright import fast

PROGRAM = """
import json, operator, os, runpy, sys, warnings
import torch, torch._dynamo, torch.export
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import rms_norm
warnings.simplefilter("ignore")
torch.manual_seed(0)
x, w = torch.randn(2, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)

class Module(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f
    def forward(self, x, w):
        return torch.sin(x) * self.f(x * x, w)

def backward(f, x=x, w=w):
    a, b = (t.clone().requires_grad_() for t in (x, w))
    f(a, b).sum().backward()
    return a.grad, b.grad

def twice(f):
    a, b = (t.clone().requires_grad_() for t in (x, w))
    first = torch.autograd.grad(f(a, b).sum(), (a, b), create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), (a, b))

def dual(f):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, x.cos()), w)).tangent

def no_grad(f):
    with torch.no_grad():
        return f(torch.nn.Parameter(x), torch.nn.Parameter(w))

def autocast(f):
    with torch.autocast("cpu"):
        return f(x.float(), w.float())

loss = lambda f: lambda *t: f(*t).sum()
both, xs = (0, 1), torch.stack([x, 2 * x])
TRANSFORMS = [
    *(backward, twice, dual, no_grad, autocast, lambda f: f(x, w)),
    lambda f: torch.func.grad(loss(f), both)(x, w),
    lambda f: torch.vmap(torch.func.grad(loss(f), both), (0, None))(xs, w),
    lambda f: torch.func.grad(lambda *t: torch.vmap(f, (0, None))(*t).sum(), both)(xs, w),
    lambda f: torch.func.jvp(f, (x, w), (x.cos(), w.cos())),
    lambda f: torch.func.jacfwd(f, both)(x, w),
    lambda f: torch.func.hessian(loss(f), both)(x, w),
]
GRAPHS = [
    lambda f: make_fx(f)(x, w),
    lambda f: torch.export.export(Module(f), (x, w)).module(),
    lambda f: torch.compile(f, backend="aot_eager"),
]

def trials(c):
    ops = torch.ops.cuda_ext_example
    theirs = lambda x, w: rms_norm(x, x.shape[-1:], w)
    added = [lambda x, w, f=f: torch.stack(f(x, x.sin(), w)) for f in (c.add_rms_norm, ops.add_rms_norm)]
    their_sum = lambda x, w: torch.stack((theirs(x + x.sin(), w), x + x.sin()))
    gate = lambda x, w: torch.nn.functional.silu(x) * w
    pairs = ((c.my_add, torch.add), (ops.my_add, torch.add), (c.rms_norm, theirs), (ops.rms_norm, theirs))
    pairs += ((c.silu_mul, gate), (ops.silu_mul, gate))
    for ours, torchs in (*pairs, *((f, their_sum) for f in added)):
        for transform in TRANSFORMS:
            yield lambda f, transform=transform: transform(Module(f)), ours, torchs
        for graph in GRAPHS if ours in (c.my_add, c.rms_norm, added[0]) else ():
            for transform in (backward, dual, TRANSFORMS[6]):
                yield lambda f, transform=transform, graph=graph: transform(graph(Module(f))), ours, torchs
    yield lambda f: backward(lambda x, w: f(x, w[0].item())), c.cust_add, lambda x, v: x + v

def outcome(case, f):
    torch._dynamo.reset()
    try:
        return case(f)
    except Exception as error:
        return error

def run(names):
    held = []
    for name in names:
        owner, _, last = name.rpartition(".")
        owner = operator.attrgetter(owner)(torch) if owner else torch
        held.append((owner, last, getattr(owner, last)))
        delattr(owner, last)
    try:
        runpy.run_path(sys.argv[1])
    except AttributeError:
        sys.modules["cuda_ext_example._opwright.fast"] = None  # its import fails, as it just did
    for held_name in held:
        setattr(*held_name)  # torch needs some of them itself
    import cuda_ext_example as c
    from cuda_ext_example._opwright import registration
    wrong = []
    # One missing name or all: what is left is the same documented way. All cases for all, every tenth for one.
    cases = list(trials(c))[:: 10 if len(names) == 1 else 1]
    for number, (case, ours, torchs) in enumerate(cases):
        expected, actual = outcome(case, torchs), outcome(case, ours)
        if isinstance(expected, Exception):
            continue
        try:
            torch.testing.assert_close(actual, expected)
        except Exception as error:
            wrong.append(f"{number}: {actual!r:.300}")
    return {"fast": registration.fast is not None, "cases": number + 1, "wrong": wrong}

for names in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        try:
            print(json.dumps(run(names)), flush=True)
        except BaseException as error:
            print(json.dumps({"failed": repr(error)}), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def run(program, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        **options,
    )


def test_results_without_private_names():
    removed = [[], *([name] for name in fast.NAMES), list(fast.NAMES)]
    done = run(PROGRAM, fast.__file__, input=json.dumps(removed))
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(removed)
    for names, outcome in zip(removed, outcomes, strict=True):
        assert outcome.get("wrong") == [], (names, outcome)
        assert outcome["fast"] == (not names), names
        assert outcome["cases"] >= (7 if len(names) == 1 else 67)


CHANGED = """
import operator, runpy, sys, torch
path, *names = sys.argv[1:]
for name in names:
    owner, _, last = name.rpartition(".")
    owner = operator.attrgetter(owner)(torch) if owner else torch
    meant = getattr(owner, last)
    setattr(owner, last, lambda *_, **__: object())
    try:
        runpy.run_path(path)
        print(name)
    except Exception:
        pass
    setattr(owner, last, meant)
"""


def test_a_name_that_means_something_else_is_noticed():
    done = run(CHANGED, fast.__file__, *fast.NAMES)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize(
    "setting",
    [
        *("with torch.no_grad():", "with torch.inference_mode():", "with torch.device('meta'):"),
        "torch.set_default_dtype(torch.float64);",
    ],
)
def test_the_fast_layer_passes_its_check_wherever_it_is_imported(setting):
    assert imported(setting) == "None"


@pytest.mark.parametrize(
    "setting",
    ["with torch._subclasses.FakeTensorMode():", "with torch.autograd.forward_ad.dual_level():"],
)
def test_an_import_under_a_mode_leaves_out_the_fast_layer(setting):
    """Its check calls kernels, which read memory that a fake tensor does not have."""
    assert imported(setting) == (
        "ImportError: imported under a mode or a transform of torch, where private names cannot be checked"
    )


def imported(setting):
    """Returns why the fast layer is not used, after an import with the setting, and a call without it."""
    done = run(
        f"import torch, torch._subclasses\n{setting} import cuda_ext_example as ours\n"
        "assert ours.my_add(torch.ones(1, device='cpu'), torch.ones(1, device='cpu')) == 2\n"
        "from cuda_ext_example._opwright.registration import why_not_fast; print(why_not_fast)"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def private_names(file):
    """The names that start with an underscore, of anything that is imported from torch."""
    tree = ast.parse(file.read_text())
    imported = {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            imported |= {alias.asname or alias.name for alias in node.names}
            yield from (part for part in node.module.split(".") if part.startswith("_"))
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))
    for node in ast.walk(tree):
        owner = node
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        is_torchs = isinstance(owner, ast.Name) and owner.id in imported
        name = node.attr if isinstance(node, ast.Attribute) and is_torchs else ""
        if name.startswith("_") and not name.endswith("__"):
            yield name


def test_nothing_but_the_fast_layer_uses_private_names():
    package = Path(fast.__file__).parents[1]
    files = [file for file in package.rglob("*.py") if not file.name.startswith("testing")]
    used = {file.name: sorted(set(private_names(file))) for file in files}
    assert used.pop("fast.py")
    assert not {name: found for name, found in used.items() if found}
