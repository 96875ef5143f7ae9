package pair

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// labelSetup is the label of each object that setup creates. setup does not change or remove objects without this
// label. The value of the label is the Liqo cluster id of the other cluster.
const labelSetup = "liqo-autoscaler.io/setup"

// differs returns the path of the first field of want that has another value in object, or "". It ignores fields that
// want does not have, such as defaults of the API server.
func differs(object, want any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		has, ok := object.(map[string]any)
		if !ok {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if at := differs(has[key], want[key], path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		has, ok := object.([]any)
		if !ok || len(has) != len(want) {
			return path
		}
		for i := range want {
			if at := differs(has[i], want[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	}
	if !reflect.DeepEqual(object, want) {
		return path
	}
	return ""
}

// merged returns the object with all top-level fields of want except metadata. The caller merges the labels.
func merged(object, want map[string]any) map[string]any {
	out := maps.Clone(object)
	for key, value := range want {
		if key != "metadata" {
			out[key] = value
		}
	}
	return out
}
