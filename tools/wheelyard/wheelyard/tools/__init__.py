"""Holds tools that the steps use: images, package indexes, the contents of wheels, wheelscope."""
