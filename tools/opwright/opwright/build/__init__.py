"""What builds this extension: setup.py's helpers and the kernel developer's tools. No part of the pipeline."""
