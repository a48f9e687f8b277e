"""What must hold before any order is looked at: starts and dones, channels, groups, pairs of sends and recvs."""
