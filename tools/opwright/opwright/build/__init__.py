"""Builds an extension's library: toolchain, CMake, the developer's loop, the build's doctor."""
