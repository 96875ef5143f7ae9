package doctor

// Known returns the ids of all findings.
func Known() (ids []ID) {
	for id := range kinds {
		ids = append(ids, id)
	}
	return ids
}
