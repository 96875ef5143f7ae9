package discovery

import "github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"

// ParseOffer reads one offer in the same way as the discovery server. It returns the fields and the error of Check.
func ParseOffer(document []byte) (Spec, error) {
	var spec Spec
	_, faults, err := strictyaml.Unmarshal(document, &spec)
	if err == nil {
		err = faults.And(spec.check()).Locate(document).Err()
	}
	return spec, err
}

// ParsePublished exports parsePublished for tests.
var ParsePublished = parsePublished
