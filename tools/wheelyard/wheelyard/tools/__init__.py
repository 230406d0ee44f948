"""What the steps work with: images, package indexes, wheels' insides, wheelscope."""
