"""The process that xbuild runs in: depth of calls, garbage collection, deadlines, memory."""
