"""Time lines for other tools: Chrome trace events, Chakra execution traces, GOAL schedules."""
