"""DTensor: ops run on the parts of a tensor where they may, and give what one process gives."""

import os
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import sys, torch
without_fast, dtensor_first, file = sys.argv[1] == "True", sys.argv[2] == "True", sys.argv[3]
if without_fast:
    sys.modules["cuda_ext_example._opwright.fast"] = None
if dtensor_first:
    import torch.distributed.tensor
import cuda_ext_example as ours
import torch.distributed as dist
from torch import multiprocessing
from torch.nn.functional import rms_norm, silu

def compare(rank, f, reference, tensors, placement, result):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, distribute_tensor
    mesh = init_device_mesh("cpu", (2,))
    for grad in (False, True):
        whole = [t.clone().requires_grad_(grad) for t in tensors]
        parts = [
            distribute_tensor(t, mesh, [Replicate() if i else placement]).requires_grad_(grad)
            for i, t in enumerate(tensors)
        ]
        out, expected = f(*parts), reference(*whole)
        assert out.placements == (result,), (f, placement, out.placements)
        torch.testing.assert_close(out.full_tensor(), expected)
        if grad:
            out.square().sum().backward()
            expected.square().sum().backward()
            for part, one in zip(parts, whole):
                torch.testing.assert_close(part.grad.full_tensor(), one.grad)

def work(rank):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    from torch.distributed.tensor import Replicate, Shard
    torch.manual_seed(0)
    x, weight, column = torch.randn(5, 6, 8), torch.randn(8), torch.randn(6, 1)
    theirs = lambda x, *w: rms_norm(x, (8,), *w)
    for place in (Shard(0), Shard(1), Shard(2), Replicate()):
        rows = Replicate() if place == Shard(2) else place
        compare(rank, ours.my_add, torch.add, (x, column), place, place)
        compare(rank, torch.ops.cuda_ext_example.my_fast_add, torch.add, (x, x), Replicate(), Replicate())
        compare(rank, lambda x: ours.cust_add(x, 2), lambda x: x + 2, (x,), place, place)
        compare(rank, ours.silu_mul, lambda x, y: silu(x) * y, (x, column), place, place)
        compare(rank, ours.rms_norm, theirs, (x, weight), place, rows)
        compare(rank, ours.rms_norm, theirs, (x,), place, rows)
        added = lambda x, w: torch.mul(*ours.add_rms_norm(x, 2 * x, w))
        compare(rank, added, lambda x, w: theirs(3 * x, w) * 3 * x, (x.double(), weight.double()), place, rows)
    dist.destroy_process_group()

if __name__ == "__main__":
    multiprocessing.start_processes(work, nprocs=2, start_method="fork")
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no distributed")
@pytest.mark.parametrize("without_fast", [False, True])
@pytest.mark.parametrize("dtensor_first", [False, True])
def test_sharded_tensors(tmp_path, without_fast, dtensor_first):
    arguments = [str(without_fast), str(dtensor_first), str(tmp_path / "store")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
