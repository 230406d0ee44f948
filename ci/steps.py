"""The names of the steps, in their order, and of what only some machines can do."""

STEPS = {
    "image": "make the build and verify images",
    "build": "make the sdist, and from it the wheels, with cibuildwheel",
    "repair": "give the wheels their manylinux tag with auditwheel, and their SBOM",
    "gate": "judge the wheels: wheelscope, twine, check-wheel-contents",
    "verify": "run the package's tests on each torch and Python, link against the rest",
    "smoke": "run the wheel here, and look up the GPU evidence",
    "publish": "upload to the index with twine",
    "install": "install from the index by name, and smoke-test again",
    "report": "write the report page",
}
# Not part of `release`: each a job of the workflows.
ALONE = {
    "join": "take over what other jobs handed on, from wheelhouse/handed/",
    "gpu": "run the wheels on this machine's GPU, and write the evidence",
    "attest": "sign PEP 740 attestations with this job's GitHub identity",
    "github": "make the release page of the tag on GitHub",
}
# For the developer's machine; each a module with add_arguments() and run().
DEVELOPER = {
    "doctor": "check this machine: compilers, toolkit, cache, jobs, GPU; say what mends it",
    "explain-build": "say where the last build's time went",
}
