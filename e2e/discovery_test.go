package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// withThreeProviders makes the lab start three providers.
func withThreeProviders(s *stack) { s.wants = 3 }

// measuring returns the config of a provider's agent. The third provider is the cheapest provider, but too small.
func measuring(provider *cluster, seconds int, price float64, most string) string {
	return fmt.Sprintf(`
provider: %[1]s
ttlSeconds: %[2]d
offers:
- consumer: consumer
  hub: lab
  name: %[1]s
  credentials: {secretRef: {namespace: liqo-autoscaler, name: %[1]s}}
  price: %[3]v
  lingerSeconds: 0
  network: {mode: none}
  cap: {cpu: %[4]q}
`, provider.name, seconds, price, most)
}

// hourOff sets the clocks of the suite "discovery". The clocks of the agents and of the discovery server are an hour
// ahead of or behind the clocks of the API servers, the worker and the database. This must make no difference. If the
// end of an offer were a time of the provider's clock, a clock that is ahead would extend the offer, and with a clock
// that is behind the offer would already have expired.
var hourOff = clocks{"agent-provider1": time.Hour, "agent-provider2": -time.Hour, "agent-provider3": time.Hour,
	"discovery": -time.Hour}

// TestDiscovery is the suite "discovery". Providers publish their free amounts, reduced by the pods of other users, on
// a discovery server and without one. Their clocks are an hour off.
func TestDiscovery(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 23*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "discovery", groups, "", withOfferServer, withThreeProviders, withClocks(hourOff))
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one slice per provider")
	}
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, []part{
		{"OnAServer", onAServer},
		{"WithoutAServer", withoutAServer},
		{"ClocksWereOff", clocksWereOff},
		{"NoSecretKept", noSecretKept},
	})
}

func onAServer(ctx context.Context, t *testing.T, s *stack) {
	o, first, second, third := s.offerServer, s.providers[0], s.providers[1], s.providers[2]
	one := s.startAgent(ctx, first, measuring(first, 60, 1, "16"),
		o.agent(ctx, s, "certificate.secretName="+first.name)...)
	token := func(of *cluster) []string {
		return o.agent(ctx, s, "token.secretName=offers,discovery.token.key="+of.name)
	}
	two := s.startAgent(ctx, second, measuring(second, 3600, 2, "16"), token(second)...)
	three := s.startAgent(ctx, third, measuring(third, 10, 0.5, "1"), token(third)...)
	r := newRun(t, s)
	r.until(ctx, "offers published", 2*time.Minute, o.offers(map[string]string{first.name: "16", second.name: "16",
		third.name: "1"}))
	others, err := o.list(ctx, "another")
	require.NoError(t, err)
	require.Empty(t, others, "offers to one consumer are no other's")
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		s.readBy(ctx, off)
	}
	r.done("offers read by clocks that are off")
	thereAndElsewhere(ctx, t, s, o.offers(map[string]string{first.name: "1", second.name: "16", third.name: "1"}))

	r = newRun(t, s)
	require.NoError(t, two.Stop(time.Minute)) // otherwise its offer would stay for an hour
	r.until(ctx, "stopped agent's offer withdrawn", 30*time.Second, o.offers(map[string]string{first.name: "1",
		third.name: "1"}))
	three.Kill()
	r.until(ctx, "killed agent's offer expired", time.Minute, o.offers(map[string]string{first.name: "1"}))
	dump := o.database.Run(t, "pg_dump", append(o.database.Client(), "offers")...)
	require.Contains(t, dump, `"secretRef"`, "what is not in the dump is not in the database")
	for i, secret := range append(s.tokens, "client-key-data", "PRIVATE KEY", "UFJJVkFURSBLRV", "BEGIN CERT") {
		require.NotContains(t, dump, secret, "secret %d", i)
	}
	require.NoError(t, one.Stop(time.Minute))
	leave(ctx, t, first)
}

// withoutAServer runs the same sequence with offers that the providers' agents publish in their own clusters.
func withoutAServer(ctx context.Context, t *testing.T, s *stack) {
	require.NoError(t, s.worker.Stop(time.Minute))
	s.offerServer = nil
	written := "offers:\n"
	for n, p := range s.providers[:2] {
		s.startAgent(ctx, p, measuring(p, 60, 9, "16"))
		written += fmt.Sprintf("- {name: %[1]s, credentials: {secretRef: {namespace: %[2]s, name: %[1]s}}, "+
			"lendable: measured, price: %[3]d, lingerSeconds: 0, network: {mode: none}}\n", p.name, chartNamespace, n+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "offers.yaml"), []byte(written), 0o600))
	published := func(cpu ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			for n, want := range cpu {
				got, err := s.providers[n].kube.CoreV1().ConfigMaps("liqo-tenant-"+lab.Consumer).Get(ctx, discovery.PublishedName,
					metav1.GetOptions{})
				if err != nil {
					return err
				}
				if !strings.Contains(got.Data[hub], `"cpu":"`+want+`"`) {
					return fmt.Errorf("%s publishes %s, want cpu %s", s.providers[n].name, got.Data[hub], want)
				}
			}
			return nil
		}
	}
	newRun(t, s).until(ctx, "offers published", 2*time.Minute, published("16", "16"))
	s.worker = s.startWorker("worker")
	thereAndElsewhere(ctx, t, s, published("1", "16"))
	leave(ctx, t, s.providers[0])
}

// thereAndElsewhere creates the first node on the cheapest provider that fits. Pods of other users then reduce this
// provider's offer, and the next node is created on the second provider.
func thereAndElsewhere(ctx context.Context, t *testing.T, s *stack, shrunk func(context.Context) error) {
	t.Helper()
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	there := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, there[0], 1, s.providers[0])

	r = newRun(t, s)
	_, err := s.providers[0].kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "others"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "work",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("31")}}}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.until(ctx, "offer shrunk, in 5 s on an idle machine", time.Minute, shrunk)
	r.during(ctx, "offer stays so until no older one is used", 2*discovery.Recent, shrunk)
	require.NoError(t, deploy(ctx, s.consumer, "more", 1, "1500m"))
	elsewhere := r.scaledOut(ctx, 1)
	r.attemptOn(ctx, elsewhere[0], 1, s.providers[1])
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	require.NoError(t, undeploy(ctx, s.consumer, "more"))
	r.scaledIn(ctx, append(there, elsewhere...))
}

// leave removes the pods of the other users.
func leave(ctx context.Context, t *testing.T, provider *cluster) {
	t.Helper()
	require.NoError(t, provider.kube.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "others", metav1.DeleteOptions{}))
	newSteps(t).until(ctx, "others' pods gone", time.Minute, func(ctx context.Context) error {
		pods, err := provider.kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}
