"""Control of the process: recursion limit, garbage collection, deadlines, progress, memory, locks, child processes."""
