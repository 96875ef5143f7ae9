package x

// Free returns the amount beside the holds.
func Free() {}
