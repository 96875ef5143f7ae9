package cli

import "regexp"

// repository is the page of the project's repository.
const repository = "https://github.com/liqo-autoscaler/liqo-autoscaler"

// released is the version of a release.
var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// Page returns the URL of a file of the repository, such as docs/doctor.md#clock-skew, as it is in the release of this
// program. A program that is not from a release gets the newest version of the file.
func Page(file string) string {
	ref := "main"
	if released.MatchString(Version) {
		ref = "v" + Version
	}
	return repository + "/blob/" + ref + "/" + file
}
