"""Verifies a variant: uv chooses between a wheel and all its variants for a simulated GPU, and its choice is
smoke-tested."""

import json
import shutil
from pathlib import Path

from wheelyard.config.matrix import RunCell
from wheelyard.core import digest, environment
from wheelyard.core.job import Job, Needs, made
from wheelyard.core.workspace import Workspace
from wheelyard.plan.cells import Variant, index_of_file, split_label
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem
from wheelyard.steps import smoke
from wheelyard.steps.install import OWN_PLACE, ordinary_user
from wheelyard.tools import images, static_index


def job(plan: Plan, variant: Variant, cell: RunCell) -> Job:
    wheel = variant.wheel
    inputs = {
        "files": made(f"repair/{wheel.name}", *(f"repair/{v.name}" for v in plan.variants(wheel))),
        "label": variant.label,
        "gpu": variant.gpu,
        "project": plan.project.name,
        "image": images.for_verify(plan, cell, wheel.arch),
        **smoke.spec(plan),
        "tools": digest.tools("uv"),
        "code": digest.code(__name__),
    }
    needs = Needs(wheel.arch, engine=True)
    return Job("verify", f"{variant.name}-torch{cell.torch}-python{cell.python}", needs, inputs)


def install(workspace: Workspace) -> str:
    if not (uv := shutil.which("uv", path=environment.path())):
        raise Problem(
            "uv, which installs variants, is missing: `pip install 'wheelyard[variants]'`"
        )
    inputs, index, told = workspace.inputs, workspace.scratch("index"), workspace.scratch("spec")
    files = workspace.files("files")
    (variant,) = (file for file in files if split_label(file.name)[1] == inputs["label"])
    static_index.append(index, inputs["project"], files)
    output = workspace.scratch("taken")
    output.chmod(0o777)
    taken = "/tmp/own/lib/python*/site-packages/*.dist-info/variant.json"
    script = " && ".join([
        OWN_PLACE,
        "/uv pip install --quiet --no-cache --no-deps --python /tmp/own/bin/python --preview-features wheel-variants "
        f"--index-url file:///index/simple/{index_of_file(variant.name)} {inputs['project']}",
        f"cp {taken} /out/",
        smoke.installed_command(inputs, told, f"/index/{variant.name}", "/out/smoke.json"),
    ])  # fmt: skip
    options = [
        "--network=none",
        *ordinary_user(),
        f"--env=NV_VARIANT_PROVIDER_FORCE_SM_ARCH={inputs['gpu']}",
        "--env=NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION=13.0",
        f"--volume={index}:/index:ro",
        f"--volume={output}:/out",
        f"--volume={Path(uv).resolve()}:/uv:ro",
        *smoke.mounts(told),
    ]
    what = f"installing {inputs['project']} for GPU {inputs['gpu']}"
    images.run(workspace, options, ["sh", "-c", script], what=what)
    label = next(iter(json.loads((output / "variant.json").read_text())["variants"]))
    if label != inputs["label"]:
        raise Problem(f"uv took the variant {label} for GPU {inputs['gpu']}, not {inputs['label']}")
    return f"uv took {variant.name}"
