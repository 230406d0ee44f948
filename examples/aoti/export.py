"""Compiles a model that uses the ops with AOTInductor, for a program without Python: run.cpp.

    python examples/aoti/export.py build/aoti [cpu|cuda]

Writes model.pt2 (the compiled model), and input.pt and output.pt: an input, and what eager torch
makes of it, for the program to compare with.
"""

import sys
from pathlib import Path

import torch

from cuda_ext_example import cust_add, my_add, my_fast_add, rms_norm


class Model(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.bias = torch.nn.Parameter(torch.linspace(-1, 1, width))
        self.weight = torch.nn.Parameter(torch.linspace(1, 2, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.linear(rms_norm(x, self.weight)))
        hidden = my_fast_add(hidden, self.bias)
        return cust_add(my_add(hidden, x), 0.5)


def export(folder: Path, device: str) -> None:
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    model = Model(64).to(device).eval()
    x = torch.randn(8, 64, device=device)
    rows = torch.export.Dim("rows", min=2, max=4096)
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
        package = torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / "model.pt2")
        )
        x = torch.randn(5, 64, device=device)  # another number of rows than was exported
        for name, tensor in (("input", x), ("output", model(x))):
            torch.save(tensor.cpu(), folder / f"{name}.pt")
    print(f"wrote {package}")


if __name__ == "__main__":
    export(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cpu")
