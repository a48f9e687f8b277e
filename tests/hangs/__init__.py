"""`xbuild hang`: readers of each format, hostile dumps, jobs with a known fault, the command, and the page."""
