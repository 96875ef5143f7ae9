package strictyaml

// OtherFile returns an error if the document has the top-level keys of another type of file. The error names the
// command that checks such a file. own is the top-level key of the expected type of file.
func OtherFile(tree map[string]any, own string) error {
	_, groups := tree["nodeGroups"]
	_, offers := tree["offers"]
	text := ""
	switch {
	case groups && offers:
		text = "these are values of the Helm chart: `helm lint CHART --values FILE` checks them"
	case groups && own != "nodeGroups":
		text = "this is a file of node groups: `liqo-autoscaler config validate` checks it"
	case offers && own != "offers":
		text = "this is a file of offers: `liqo-autoscaler offers validate` checks it"
	default:
		return nil
	}
	return Faults{{Message: text}}
}
