package doctor

// Known returns the ids of all findings.
func Known() (ids []ID) {
	for id := range known {
		ids = append(ids, id)
	}
	return ids
}
