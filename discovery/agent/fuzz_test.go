package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzSlices reads slices with any content that a consumer can write. A slice without an entry in the record has no
// grant, regardless of the content of its fields.
func FuzzSlices(f *testing.F) {
	for _, seed := range []string{
		`{"metadata": {"name": "a", "namespace": "liqo-tenant-munich", "uid": "u"}, "spec": {"consumerClusterID": "munich",
			"class": "liqo-autoscaler", "resources": {"cpu": "1500m", "memory": "4Gi"}}}`,
		`{"spec": {"class": "default", "resources": {"cpu": 1e1000000}}, "status": {"resources": {"cpu": "1e1.5"},
			"conditions": [{"type": "Resources", "status": "Accepted"}]}}`,
		`{"metadata": {"labels": {"liqo.io/originID": null}, "uid": 7}, "spec": [], "status": "x"}`,
		`{"spec": {"resources": {"": "1", "a": {"b": "c"}}}, "status": {"conditions": {}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object := map[string]any{}
		if json.Unmarshal(raw, &object) != nil {
			return // an API server stores only objects
		}
		s := sliceOf(&unstructured.Unstructured{Object: object})
		all := []Slice{s}
		tenants := map[string]Tenant{s.Namespace: {ClusterID: s.Spec.Consumer}}
		settle(all, tenants, map[types.UID]grant{})
		for _, amount := range all[0].Granted() {
			_ = amount.String()
		}
		if all[0].Spec.Class == Class {
			require.Empty(t, all[0].Granted(), "the record has nothing of it")
		}
	})
}
