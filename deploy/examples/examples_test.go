package examples_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// The code that parses a user's file can parse each example file.
func TestEveryExampleIsParsed(t *testing.T) {
	parsers := map[string]func(*testing.T, []byte) error{
		"nodegroups.yaml": func(_ *testing.T, raw []byte) error { _, err := config.Parse(raw); return err },
		"offers.yaml":     func(_ *testing.T, raw []byte) error { _, err := discovery.Parse(raw); return err },
		"agent.yaml":      func(_ *testing.T, raw []byte) error { _, err := agent.Parse(raw); return err },
		"writers.yaml":    func(_ *testing.T, raw []byte) error { _, err := server.ParseWriters(raw); return err },
		"offer-secret.yaml": func(t *testing.T, raw []byte) error {
			offers, problems := listSecret(t, raw)
			require.Empty(t, problems)
			require.Len(t, offers, 1)
			return nil
		},
	}
	files, err := filepath.Glob("*")
	require.NoError(t, err)
	for _, file := range files {
		if filepath.Ext(file) == ".go" {
			continue
		}
		t.Run(file, func(t *testing.T) {
			require.Contains(t, parsers, file, "an example that nothing parses goes stale: add its parser here")
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, parsers[file](t, raw))
			delete(parsers, file)
		})
	}
	require.Empty(t, parsers, "parsers without a file")
}

// listSecret passes a Secret to the source that reads offers from Secrets, in the form in which an API server returns
// it.
func listSecret(t *testing.T, raw []byte) ([]fleet.Offer, []discovery.Problem) {
	t.Helper()
	var secret corev1.Secret
	require.NoError(t, yaml.UnmarshalStrict(raw, &secret))
	secret.Data = map[string][]byte{}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	source, err := secrets.New(fake.NewClientset(&secret), secrets.Options{Namespace: secret.Namespace})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	offers, problems, err := source.List(ctx)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, err)
	return offers, problems
}

// The example files fit together: the discovery server accepts every offer, and every group can use an offer of the
// examples.
func TestExamplesFitTogether(t *testing.T) {
	groups, err := config.Parse(examples.NodeGroups)
	require.NoError(t, err)
	offers, err := discovery.Parse(examples.Offers)
	require.NoError(t, err)
	var candidates []choice.Candidate
	for _, spec := range offers.Offers {
		require.NoError(t, (&api.Posted{Spec: spec}).Check())
		o := spec.Offer()
		o.Provider = o.Credentials.SecretRef.Name
		candidates = append(candidates, choice.Candidate{Offer: o})
	}
	chosen := map[string]string{}
	for _, g := range groups.NodeGroups {
		chosen[g.ID] = choice.Choose(g.Bases()[0].InstanceSpec, candidates, nil, choice.Rank{}, time.Now()).Chosen
	}
	require.Equal(t, map[string]string{"standard": "milan", "gpu": "genoa"}, chosen)
}
