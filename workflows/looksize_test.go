package workflows_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// labelled is a spec as people write it, with n labels of their own.
func labelled(n int) fleet.GroupSpec {
	spec := reviewSpec()
	spec.Labels = map[string]string{"node.kubernetes.io/instance-type": "edge-standard-2", "topology.kubernetes.io/region": "eu-south-1"}
	for i := range n {
		spec.Labels["platform.example.com/"+strings.Repeat("k", 12)+string(rune('a'+i))] = strings.Repeat("v", 30)
	}
	spec.Taints = []corev1.Taint{{Key: "platform.example.com/dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}}
	spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "country", Operator: metav1.LabelSelectorOpIn, Values: []string{"it", "fr", "de"}}}}
	spec.Budgets = spec.Budgets.WithDefaults()
	return spec
}

// What a look at a group of the largest size returns is one payload, too, and is written to its history every minute.
func TestLargestGroupCanBeLookedAt(t *testing.T) {
	spec := labelled(20)
	var found []backend.Found
	for i := range spec.Max {
		found = append(found, backend.Found{
			Attempt: backend.Attempt{Group: spec.ID, Instance: fleet.InstanceName(spec.ID, "tot1om", i+1), Number: 1, Provider: backend.Provider{
				ID: "provider-2f6c1f0a-6a3c-4b8f", Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "liqo-autoscaler", Name: "milan-spare"}},
			}},
			Booking: &backend.Booking{Spec: spec, BookedAt: reviewAt}, Slice: true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
		})
	}
	a := &activities.Activities{Backend: inventory{found: found}, Holds: nobody{}}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(a.RecoverGroup, activity.RegisterOptions{Name: activities.NameRecoverGroup})
	got, err := env.ExecuteActivity(activities.NameRecoverGroup, spec.ID)
	require.NoError(t, err)
	var raw json.RawMessage
	require.NoError(t, got.Get(&raw))
	require.Less(t, len(raw), 512<<10, "what exists of %d instances, every minute; Temporal takes no payload above %d", spec.Max, 2<<20)
}

// inventory is a backend that only lists.
type inventory struct {
	backend.Backend
	found []backend.Found
}

func (i inventory) List(context.Context, string) ([]backend.Found, error) { return i.found, nil }

// nobody is no provider at all.
type nobody struct{ activities.Holds }

func (nobody) Listed(context.Context) ([]fleet.ProviderState, error) { return nil, nil }
