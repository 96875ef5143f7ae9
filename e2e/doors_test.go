package e2e_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/failpoint"
)

// doors forwards the worker's requests to the clusters. It may kill the worker before it forwards a write, or after the
// cluster has answered and before the worker receives the answer.
type doors struct {
	s *stack

	mu    sync.Mutex
	lives map[string]*failpoint.Life // the current life of each provider, by its name
}

// withDoors makes all requests of the worker to the clusters pass through doors.
func withDoors(d *doors) func(*stack) { return func(s *stack) { s.doors = d } }

// open makes a door for each cluster and changes the accounts' kubeconfigs so that they lead to it.
func (d *doors) open(s *stack) {
	s.t.Helper()
	d.s = s
	for _, cluster := range append([]string{lab.Consumer}, s.lab.Providers...) {
		path := filepath.Join(s.accounts, cluster+".kubeconfig")
		config := restConfig(s.t, path)
		behind, err := url.Parse(config.Host)
		require.NoError(s.t, err)
		next, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
		require.NoError(s.t, err)
		server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, Transport: door{d, cluster, next},
			FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)})
		server.StartTLS()
		s.t.Cleanup(server.CloseClientConnections) // Close would wait for the watches
		leads, err := clientcmd.LoadFromFile(path)
		require.NoError(s.t, err)
		for _, c := range leads.Clusters {
			c.Server, c.CertificateAuthority, c.TLSServerName = server.URL, "", ""
			c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		}
		require.NoError(s.t, clientcmd.WriteToFile(*leads, path))
	}
}

// begin sets the current life (the creation and removal of one node) on a provider; nil ends it.
func (d *doors) begin(provider string, life *failpoint.Life) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lives == nil {
		d.lives = map[string]*failpoint.Life{}
	}
	d.lives[provider] = life
}

// dies kills the worker and starts it again if due returns true. It returns the result of due.
func (d *doors) dies(due func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !due() {
		return false
	}
	d.s.worker.Kill()
	d.s.worker = d.s.startWorker("worker")
	return true
}

// door forwards the requests to one cluster.
type door struct {
	*doors
	cluster string
	next    http.RoundTripper
}

var errKilled = errors.New("the worker was killed")

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	name := writeOf(r)
	life, err := d.lifeOf(r)
	if name == "" || life == nil || err != nil {
		return d.forward(r, err)
	}
	role := "provider"
	if d.cluster == lab.Consumer {
		role = "consumer"
	}
	var effect string
	if d.dies(func() (die bool) { effect, die = life.Before(role + " " + name); return die }) {
		return nil, errKilled
	}
	response, err := d.forward(r, nil)
	if d.dies(func() bool { return life.After(effect) }) {
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errKilled
	}
	return response, err
}

func (d door) forward(r *http.Request, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	return d.next.RoundTrip(r)
}

// lifeOf returns the life of the provider that a request concerns. The names of all of our objects contain the name of
// the provider.
func (d door) lifeOf(r *http.Request) (*failpoint.Life, error) {
	about := d.cluster + r.URL.Path
	if r.Method == http.MethodPost && r.Body != nil { // reads the name of the new object
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body, about = io.NopCloser(bytes.NewReader(body)), about+string(body)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for provider, life := range d.lives {
		if strings.Contains(about, provider) {
			return life, nil
		}
	}
	return nil, nil //nolint:nilnil // none
}

// writeOf returns the change that a request makes, such as "patch nodes", or "" when the request makes no lasting
// change.
func writeOf(r *http.Request) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete"}[r.Method]
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if verb == "" || skip == 0 || len(parts) <= skip || r.URL.Query().Has("dryRun") {
		return ""
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch parts[0] {
	case "events", "leases", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews":
		return "" // reports and reviews change nothing
	}
	if len(parts) > 2 {
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}
