"""What a release shows when it is over, from its record alone: the page, the static index, GitHub's release page."""
