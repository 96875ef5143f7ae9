package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/url"
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
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// offerServer is a discovery server on PostgreSQL, and what its clients need. The first provider's agent has a
// certificate, all others tokens.
type offerServer struct {
	t        *testing.T
	database *postgres.Server
	address  string
	tls      *testkit.Mount // the server's, with the authority of all
	first    *testkit.Mount // the first provider's
	dir      string         // tokens, by client
}

// withOfferServer has the worker take offers from a discovery server, as one consumer of two.
func withOfferServer(s *stack) { s.offerServer = &offerServer{t: s.t} }

// withThreeProviders has the lab start three.
func withThreeProviders(s *stack) { s.wants = 3 }

func (o *offerServer) in(name string) string { return filepath.Join(o.dir, name) }

// start starts the database and the server.
func (o *offerServer) start(ctx context.Context, s *stack) {
	o.t.Helper()
	o.dir, o.database = o.t.TempDir(), postgres.New(o.t)
	o.database.CreateDatabase(o.t, "offers")
	const id = "spiffe://lab.example/provider/"
	uri, err := url.Parse(id + s.providers[0].name)
	require.NoError(o.t, err)
	authority := newAuthority(o.t)
	o.tls = testkit.NewMount(o.t, authority.Issue(o.t).Secret(o.t, authority))
	o.first = testkit.NewMount(o.t, authority.Issue(o.t, func(c *x509.Certificate) {
		c.URIs, c.ExtKeyUsage = []*url.URL{uri}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}).Secret(o.t, authority))
	writers := "writers:\n"
	for n, p := range s.providers {
		proof := "tokenSHA256: " + o.token(p.name)
		if n == 0 {
			proof = "certificate: " + uri.String()
		}
		writers += fmt.Sprintf("- {name: %[1]s, %[2]s, providers: [%[1]s], secretNamespaces: [%[3]s]}\n", p.name, proof,
			chartNamespace)
	}
	for _, consumer := range []string{lab.Consumer, "another"} {
		writers += fmt.Sprintf("- {name: %s, tokenSHA256: %s, consumer: %[1]s}\n", consumer, o.token(consumer))
	}
	for name, text := range map[string]string{"writers.yaml": writers, "dsn": o.database.DSN("offers")} {
		require.NoError(o.t, os.WriteFile(o.in(name), []byte(text), 0o600))
	}
	ports, err := proc.FreePorts(1)
	require.NoError(o.t, err)
	o.address = ports[0]
	p := s.start("discovery", "discovery", "--listen", o.address, "--tls-cert", o.tls.File("tls.crt"),
		"--tls-key", o.tls.File("tls.key"), "--tls-client-ca", o.tls.File("ca.crt"), "--writers", o.in("writers.yaml"),
		"--store", "postgres", "--postgres-dsn-file", o.in("dsn"), "--metrics-listen", "", "--health-listen", "")
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	require.NoError(o.t, p.Until(ctx, func(ctx context.Context) error {
		_, err := o.list(ctx, lab.Consumer)
		return err
	}))
}

// token makes the token of a client, and returns its hash.
func (o *offerServer) token(name string) string {
	token := rand.Text() + rand.Text()
	require.NoError(o.t, os.WriteFile(o.in(name), []byte(token), 0o600))
	return fmt.Sprintf("%x", sha256.Sum256([]byte(token)))
}

// flags are those of a client with a token.
func (o *offerServer) flags(name string) []string {
	return []string{"--discovery-url", "https://" + o.address, "--discovery-ca", o.tls.File("ca.crt"),
		"--discovery-token-file", o.in(name)}
}

// list is what a consumer is told of, by the offers' names.
func (o *offerServer) list(ctx context.Context, consumer string) (map[string]fleet.Offer, error) {
	c, err := client.New(client.Options{URL: "https://" + o.address, CAFile: o.tls.File("ca.crt"),
		TokenFile: o.in(consumer), SecretNamespaces: []string{chartNamespace}})
	if err != nil {
		return nil, err
	}
	source, err := client.NewSource(c)
	if err != nil {
		return nil, err
	}
	offers, problems, err := source.List(ctx)
	if err != nil || len(problems) > 0 {
		return nil, fmt.Errorf("list offers: %v: %w", problems, err)
	}
	byName := map[string]fleet.Offer{}
	for _, offer := range offers {
		byName[offer.Name] = offer
	}
	return byName, nil
}

// offers wants exactly these offers on the server, each with so many CPUs.
func (o *offerServer) offers(want map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		listed, err := o.list(ctx, lab.Consumer)
		if err != nil {
			return err
		}
		found := map[string]string{}
		for name, offer := range listed {
			found[name] = offer.Lendable.Cpu().String()
		}
		if fmt.Sprint(found) != fmt.Sprint(want) {
			return fmt.Errorf("offers are %v, want %v", found, want)
		}
		return nil
	}
}

// measuring is the config of a provider's agent. The third is the cheapest, and too small.
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

// TestDiscovery is the suite discovery: providers publish what they have, and lose what others take there, on a
// discovery server and without one. That clocks may be an hour off is shown where they can be set:
// TestTwoServersOfOneDatabase, TestAReaderWhoseClockIsOff and TestMeasuredOffer (discovery).
func TestDiscovery(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 23*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "discovery", groups, "", withOfferServer, withThreeProviders)
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one slice per provider")
	}
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, []part{
		{"OnAServer", onAServer},
		{"WithoutAServer", withoutAServer},
		{"NoSecretKept", noSecretKept},
	})
}

func onAServer(ctx context.Context, t *testing.T, s *stack) {
	o, first, second, third := s.offerServer, s.providers[0], s.providers[1], s.providers[2]
	one := s.startAgent(ctx, first, measuring(first, 60, 1, "16"), "--discovery-url", "https://"+o.address,
		"--discovery-ca", o.tls.File("ca.crt"), "--discovery-cert", o.first.File("tls.crt"), "--discovery-key",
		o.first.File("tls.key"))
	two := s.startAgent(ctx, second, measuring(second, 3600, 2, "16"), o.flags(second.name)...)
	three := s.startAgent(ctx, third, measuring(third, 10, 0.5, "1"), o.flags(third.name)...)
	r := newRun(t, s)
	r.until(ctx, "offers published", 2*time.Minute, o.offers(map[string]string{first.name: "16", second.name: "16",
		third.name: "1"}))
	others, err := o.list(ctx, "another")
	require.NoError(t, err)
	require.Empty(t, others, "offers to one consumer are no other's")
	thereAndElsewhere(ctx, t, s, o.offers(map[string]string{first.name: "1", second.name: "16", third.name: "1"}))

	r = newRun(t, s)
	require.NoError(t, two.Stop(time.Minute)) // its offer would live for an hour
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

// withoutAServer is the same story with offers that the providers' agents publish in their own clusters.
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

// thereAndElsewhere: the cheapest provider that fits gives the first node; pods of others shrink its offer, and the next
// node comes from the second provider.
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

// leave removes the others' pods.
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
