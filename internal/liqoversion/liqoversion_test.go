package liqoversion

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestVersionCombinationsAreJudged(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]struct {
		problem string
		refused bool
	}{
		{"1.2.0", "1.2.3"}:      {},
		{"v1.1.2", "1.1.0"}:     {},
		{"1.0.2", "1.0.3"}:      {"is not tested", false},
		{"1.0.1", "1.0.2"}:      {"before 1.0.2", true},
		{"1.2.0", "0.9.4"}:      {"before 1.0.2", true},
		{"1.2.0", "1.1.2"}:      {"different minor versions", true},
		{"1.2.0", "2.2.0"}:      {"different minor versions", true},
		{"1.3.0", "1.3.0"}:      {"is newer than", true},
		{"1.3.0-rc.1", "1.3.0"}: {"is newer than", true},
		{"", "1.2.0"}:           {`(consumer "", provider "1.2.0")`, false},
		{"1.2.0", "latest"}:     {`provider "latest"`, false},
	} {
		problem, refused := Judge(pair[0], pair[1])
		require.Equal(t, want.refused, refused, pair)
		require.Equal(t, want.problem == "", problem == "", "%v: %s", pair, problem)
		require.Contains(t, problem, want.problem, pair)
	}
}

func TestOneNodePerProviderUpTo11(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{"1.1.2": true, "v1.0.3": true, "1.2.0": false, "1.3.1": false, "abc": false} {
		require.Equal(t, want, OneNode(v), v)
	}
}

func TestVersionIsReadFromTheImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"ghcr.io/liqotech/liqo-controller-manager:v1.2.0":                    "1.2.0",
		"localhost:5000/liqo-controller-manager:v1.1.2@sha256:0123456789abc": "1.1.2",
		"localhost:5000/liqo-controller-manager":                             "1.0.2",
		"ghcr.io/liqotech/liqo-controller-manager:9a8b7c6":                   "1.0.2",
	} {
		d := &appsv1.Deployment{}
		d.Labels = map[string]string{"app.kubernetes.io/version": "v1.0.2"}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		require.Equal(t, want, Of(d), image)
	}
	require.Empty(t, Of(&appsv1.Deployment{}))
}
