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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

// offerServer is a discovery server on PostgreSQL, with the files of its clients. The first provider's agent and the
// worker have certificates, and all other clients have tokens. Server and clients have the flags of our charts.
type offerServer struct {
	t        *testing.T
	database *postgres.Server
	address  string
	tls      *testkit.Mount    // the certificate of the server and the authority of all certificates
	dir      string            // tokens, by client
	secrets  map[string]string // folders with the files of Secrets, by the Secrets' names
	worker   []string          // flags of the worker
}

// withOfferServer makes the worker read offers from a discovery server, as one of two consumers.
func withOfferServer(s *stack) { s.offerServer = &offerServer{t: s.t} }

func (o *offerServer) in(name string) string { return filepath.Join(o.dir, name) }

// start starts the database and the server.
func (o *offerServer) start(ctx context.Context, s *stack) {
	o.t.Helper()
	o.dir, o.database = o.t.TempDir(), postgres.New(o.t)
	o.database.CreateDatabase(o.t, "offers")
	authority := newAuthority(o.t)
	o.tls = testkit.NewMount(o.t, authority.Issue(o.t).Secret(o.t, authority))
	o.secrets = map[string]string{"offers": o.dir, "offers-tls": filepath.Dir(o.tls.File("tls.crt"))}
	writers := fmt.Sprintf("writers:\n- {name: worker, certificate: %s, consumer: %s}\n",
		o.certificate(authority, "consumer", lab.Consumer), lab.Consumer)
	for n, p := range s.providers {
		proof := "tokenSHA256: " + o.token(p.name)
		if n == 0 {
			proof = "certificate: " + o.certificate(authority, "provider", p.name)
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
	of := func(template string) []string {
		return s.chartArgs(ctx, "liqo-autoscaler", template, o.secrets, "--values", filepath.Join(s.dir, "groups.yaml"),
			"--set", "temporal.address="+s.temporal+",tls.existingSecret=unused",
			"--set", "offerServer.enabled=true,offerServer.url=https://"+o.address,
			"--set", "offerServer.certificate.secretName="+lab.Consumer+",offerServer.ca.secretName=offers-tls",
			"--set", "discovery.enabled=true,discovery.writers.secretName=offers",
			"--set", "discovery.store=postgres,discovery.postgres.secretName=offers",
			"--set", "discovery.tls.existingSecret=offers-tls,discovery.tls.clientCA.secretName=offers-tls")
	}
	o.worker = discoveryFlags(of("worker"))
	p := s.start("discovery", append(of("discovery"), "--listen", o.address, "--metrics-listen", "",
		"--health-listen", "")...)
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

// certificate creates the certificate of a client and its Secret, with the client's name. It returns the id in the
// certificate.
func (o *offerServer) certificate(authority *testkit.Certificate, kind, name string) string {
	id := &url.URL{Scheme: "spiffe", Host: "lab.example", Path: kind + "/" + name}
	m := testkit.NewMount(o.t, authority.Issue(o.t, func(c *x509.Certificate) {
		c.URIs, c.ExtKeyUsage = []*url.URL{id}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}).Secret(o.t))
	o.secrets[name] = filepath.Dir(m.File("tls.crt"))
	return id.String()
}

// agent returns the flags with which a provider's agent uses the discovery server. The parameter values selects a
// certificate or a token as the agent's credentials.
func (o *offerServer) agent(ctx context.Context, s *stack, values string) []string {
	return discoveryFlags(s.chartArgs(ctx, "liqo-autoscaler-agent", "agent", o.secrets, "--values", leastAgent(s.t),
		"--set", "discovery.ca.secretName=offers-tls,discovery.url=https://"+o.address+",discovery."+values))
}

// discoveryFlags returns those arguments that begin with --discovery-. With them, a client (the worker or an agent)
// uses a discovery server.
func discoveryFlags(args []string) []string {
	return slices.DeleteFunc(args, func(a string) bool { return !strings.HasPrefix(a, "--discovery-") })
}

// list returns the offers that a consumer receives, by the offers' names.
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

// offers requires exactly these offers on the server, each with this amount of CPUs.
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
