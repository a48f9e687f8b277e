"""Control of the process: recursion limit, garbage collection, deadlines, memory, locks."""
