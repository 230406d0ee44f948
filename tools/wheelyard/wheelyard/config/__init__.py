"""Reads what a project says about its wheels: ci/matrix.toml and ci/policy.toml, each defined once in a schema."""
