"""Real handwritten digits, learned by a small network on four replicas that meet in a CrossReplicaSum."""
