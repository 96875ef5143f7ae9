package doctor

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestTemporal is the oldest version of the Temporal server with which the tests run.
var oldestTemporal = version.MustParseGeneric("1.29.0")

func (r *Report) temporal(t Temporal) {
	if t.Err != nil && t.Stuck {
		r.add("temporal-stuck", "Temporal", "%v", t.Err)
		return
	}
	if t.Err != nil {
		r.add("temporal-unreachable", "Temporal", "%v", t.Err)
		return
	}
	r.examined("Temporal %s, %d node groups, %d providers", t.Version, len(t.Groups), len(t.Providers))
	if v, err := version.ParseGeneric(t.Version); err == nil && v.LessThan(oldestTemporal) {
		r.add("temporal-old", "Temporal", "its version is %s, but only %s and later are tested", t.Version, oldestTemporal)
	}
	if len(t.Missing) > 0 {
		r.add("temporal-attributes", "Temporal", "these search attributes are missing, and a worker waits for them: %s; "+
			"register them with liqo-autoscaler temporal setup", strings.Join(t.Missing, ", "))
	}
	if !t.Polled {
		r.add("temporal-no-worker", "task queue "+t.Queue,
			"no worker polls it, so requests of Cluster Autoscaler have no effect")
	}
}
