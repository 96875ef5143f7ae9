package cli

import "regexp"

// repository is the URL of the project's repository.
const repository = "https://github.com/liqo-autoscaler/liqo-autoscaler"

// released matches the version of a release.
var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// Page returns the URL of a file of the repository, such as docs/doctor.md#clock-skew. The URL leads to the version
// of the file in the release of this program. If the program is not from a release, the URL leads to the newest
// version.
func Page(file string) string {
	ref := "main"
	if released.MatchString(Version) {
		ref = "v" + Version
	}
	return repository + "/blob/" + ref + "/" + file
}
