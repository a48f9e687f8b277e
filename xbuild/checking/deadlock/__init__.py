"""The level stage: the devices are run level by level without values, to the end or until none can go on."""
