"""Image: makes the images in which wheels are built and verified, before any job needs them.

A list of all packages in an image goes into the release folder, and its digest into the record. It shows whether two
machines have the same image, and whether an image has changed: locks pin the packages from PyPI, but Debian's archive
moves on.
"""

from collections import Counter

from wheelyard.core.job import Job, Needs
from wheelyard.core.record import Record
from wheelyard.core.workspace import Workspace
from wheelyard.plan.plan import Plan
from wheelyard.problem import Problem, counted
from wheelyard.tools import images

# Runs in the image. A Python package gets a digest of the hashes that its own list of files contains, without files
# that an installer adds. There are hundreds of packages, so a line has many.
LIST = """
import hashlib, subprocess, textwrap
from importlib.metadata import distributions
debian = r"dpkg-query -W -f '${binary:Package}=${Version}\\n'"
system = f"if command -v dpkg-query >/dev/null; then {debian}; else rpm -qa; fi"
def content(package):
    files = {str(f): f.hash.value for f in package.files or () if f.hash and not str(f).startswith("..")}
    own = sorted(f"{n} {h}" for n, h in files.items() if not n.endswith(("/INSTALLER", "/REQUESTED", "_cache.json")))
    return hashlib.sha256("\\n".join(own).encode()).hexdigest()[:16]
python = {f"{p.name}=={p.version}@{content(p)}" for p in distributions()}
for words in (subprocess.check_output(system, shell=True, text=True).split(), python):
    print(textwrap.fill(" ".join(sorted(words)), 160, break_long_words=False, break_on_hyphens=False))
"""


def check(plan: Plan, record: Record) -> None:
    """Checks that every image can be made, before the first one is begun."""
    lacking = Counter(filter(None, map(plan.lacks, plan.wheels)))
    if lacking:
        raise Problem("\n".join(f"{counted(n, 'wheel')}: {lack}" for lack, n in lacking.items()))


def jobs(plan: Plan) -> list[Job]:
    recipes = [images.for_build(plan, wheel) for wheel in plan.wheels]
    runs = dict.fromkeys((c, w.arch) for w in plan.natives for c in plan.cells_run(w, debian=True))
    recipes += [images.for_verify(plan, cell, arch) for cell, arch in runs]
    by_tag = {recipe["tag"]: recipe for recipe in recipes}
    several = len({recipe["machine"] for recipe in by_tag.values()}) > 1
    return [_job(recipe, several) for recipe in sorted(by_tag.values(), key=images.unit)]


def _job(recipe: images.Recipe, several: bool) -> Job:
    unit = images.unit(recipe) + (f"-{recipe['machine']}" if several else "")
    needs = Needs(recipe["machine"], engine=True, network=True)
    return Job("image", unit, needs, {"image": recipe}, (f"packages/{unit}.txt",))


def run(job: Job, workspace: Workspace) -> str:
    options = ["--network=none", f"--volume={workspace.out}:/out"]
    script = f'python -c "$1" >/out/packages/{job.unit}.txt'
    what = "listing the packages of the image"
    images.run(workspace, options, ["sh", "-ec", script, "sh", LIST], what=what)
    return str(job.inputs["image"]["tag"])
