"""Real handwritten digits, learned by a small network on four replicas that synchronize by CrossReplicaSum."""
