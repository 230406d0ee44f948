"""The release pipeline: from ci/matrix.toml to wheels that users can install; one module a step."""
