"""Reads a project's settings for its wheels from ci/matrix.toml and ci/policy.toml. Each file is defined once, by a
schema."""
