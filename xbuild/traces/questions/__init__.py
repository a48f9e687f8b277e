"""Questions to a trace: which device has other values than the devices that should have the same."""
