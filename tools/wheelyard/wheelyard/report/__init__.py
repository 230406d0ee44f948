"""Presents a finished release from its record alone: the report, the static index, GitHub's release page."""
