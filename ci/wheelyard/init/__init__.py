"""`wheelyard init`: finds out what a project is, and writes the files that get it started."""
