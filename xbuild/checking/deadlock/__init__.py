"""First stage of the check: all devices run level by level without values, until the end or until none can go on."""
