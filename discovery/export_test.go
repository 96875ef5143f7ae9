package discovery

import "github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"

// ParseOffer reads one offer as the discovery server does: the fields, and what Check says of them.
func ParseOffer(document []byte) (Spec, error) {
	var spec Spec
	_, faults, err := strictyaml.Unmarshal(document, &spec)
	if err == nil {
		err = faults.And(spec.check()).Locate(document).Err()
	}
	return spec, err
}

// ParsePublished is parsePublished.
var ParsePublished = parsePublished
