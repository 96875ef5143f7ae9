package backend_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// SetKept removes CA's annotation only from a Node on which we have set it. It leaves each value that another actor
// has set.
func TestSetKeptRemovesOnlyOurAnnotation(t *testing.T) {
	const ca, ours = backend.AnnotationScaleDown, backend.AnnotationKept
	of := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for n := 0; n < len(pairs); n += 2 {
			m[pairs[n]] = pairs[n+1]
		}
		return m
	}
	both := of(ca, "true", ours, "true")
	for name, c := range map[string]struct {
		before, kept, released map[string]string
		byOthers               bool
	}{
		"plain":              {nil, both, nil, false},
		"another annotation": {of("a", "b"), of("a", "b", ca, "true", ours, "true"), of("a", "b"), false},
		"ours":               {both, both, nil, false},
		"kept by others":     {of(ca, "true"), of(ca, "true"), of(ca, "true"), true},
		"released by others": {of(ca, "false"), of(ca, "false"), of(ca, "false"), false},
		"ours, then changed": {of(ca, "false", ours, "true"), of(ca, "false", ours, "true"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kept, want := range map[bool]map[string]string{true: c.kept, false: c.released} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
				for k, v := range c.before {
					node.Annotations[k] = v
				}
				_, byOthers := backend.IsKept(node)
				require.Equal(t, c.byOthers, byOthers)
				changed := backend.SetKept(node, kept)
				require.Equal(t, len(want), len(node.Annotations), node.Annotations)
				for k, v := range want {
					require.Equal(t, v, node.Annotations[k])
				}
				require.False(t, changed && backend.SetKept(node, kept), "once is enough")
			}
		})
	}
}
