package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// stack is everything between Cluster Autoscaler and the clusters, each in a process of its own.
type stack struct {
	t         *testing.T
	dir       string // logs, configs, the recorded calls
	lab       *lab.Lab
	consumer  *cluster
	providers []*cluster
	proxy     *ca.Proxy
	client    protos.CloudProviderClient // to grpcserver, past the proxy

	authority *testkit.Certificate // of the connection between CA and grpcserver
	serverTLS *testkit.Mount
	clientTLS *testkit.Mount
	accounts  string   // folder of kubeconfigs, each of an account with the rights that deploy gives it
	tokens    []string // in them

	binary   string // ours
	temporal string // host:port
	server   string // host:port of grpcserver
	health   string // host:port of its /readyz
	worker   *proc.Process

	restarted    time.Time // an API server, see young
	market       bool      // the worker publishes the offers, and grpcserver reads them
	offerSecrets bool      // the worker takes Secrets in chartNamespace for offers, too
	alone        bool      // without Cluster Autoscaler, which the test plays
	doors        *doors    // through which the worker reaches the clusters, if any
}

// withMarket has the worker publish the offers in the consumer, where grpcserver reads them with the chart's rights.
func withMarket(s *stack) { s.market = true }

// withOfferSecrets has the worker take Secrets of the consumer for offers, beside the file.
func withOfferSecrets(s *stack) { s.offerSecrets = true }

// withoutCA leaves Cluster Autoscaler and the proxy before the server out.
func withoutCA(s *stack) { s.alone = true }

// envNetwork is the mode of the providers' network. With "gateway" the lab runs Liqo's gateways; default none.
const envNetwork = "LIQO_AUTOSCALER_E2E_NETWORK"

// newStack builds and starts all of it. The test's end stops it again.
func newStack(ctx context.Context, t *testing.T, suite, groups, offers string, options ...func(*stack)) *stack {
	t.Helper()
	s := &stack{t: t, dir: filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", suite)}
	for _, option := range options {
		option(s)
	}
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	timing := newSteps(t)

	bin := filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "bin") // kept: what is up to date is not linked again
	require.NoError(t, os.MkdirAll(bin, 0o755))
	s.binary = buildProduct(ctx, t, bin)
	loop := ""
	if !s.alone {
		var err error
		loop, err = ca.Build(ctx, bin)
		require.NoError(t, err)
	}
	timing.done("build")

	network := cmp.Or(os.Getenv(envNetwork), string(fleet.NetworkNone))
	s.lab = lab.ForTest(ctx, t, lab.Options{Providers: 2, Gateways: network == string(fleet.NetworkGateway)})
	timing.done("lab up")
	s.consumer = newCluster(t, s.lab, lab.Consumer)
	for _, name := range s.lab.Providers {
		s.providers = append(s.providers, newCluster(t, s.lab, name))
	}

	ports, err := proc.FreePorts(3)
	require.NoError(t, err)
	s.temporal, s.server, s.health = ports[0], ports[1], ports[2]
	s.startTemporal(ctx)
	timing.done("temporal up")
	s.accounts = t.TempDir()
	maxNodes := "0"
	if s.lab.OneSlice() {
		maxNodes = "1"
	}
	for name, text := range map[string]string{"groups.yaml": groups, "offers.yaml": offers} {
		text = strings.NewReplacer("$ACCOUNTS", s.accounts, "$MAX_NODES", maxNodes, "$NETWORK", network).Replace(text)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	s.makeAccounts(ctx)
	timing.done("accounts made")
	s.authority = newAuthority(t)
	s.serverTLS = testkit.NewMount(t, serverSecret(t, s.authority))
	s.clientTLS = testkit.NewMount(t, clientSecret(t, s.authority, caName, s.authority))
	if s.doors != nil {
		s.doors.open(s)
	}
	s.startWorker()
	s.startServer(ctx)
	timing.done("product up")

	conn, err := grpc.NewClient(s.server, grpc.WithTransportCredentials(credentialsOf(s.t, s.clientTLS)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.client = protos.NewCloudProviderClient(conn)
	if !s.alone {
		s.startCA(ctx, loop)
		timing.done("cluster autoscaler up")
	}
	t.Cleanup(s.keepEvidence) // runs second, while everything still does
	t.Cleanup(s.nothingForbidden)
	return s
}

// startCA starts Cluster Autoscaler's loop, and the proxy between it and grpcserver.
func (s *stack) startCA(ctx context.Context, loop string) {
	s.t.Helper()
	// CA meets at the proxy what it would meet at our server
	door, err := grpcserver.TLS(s.tlsFiles(), []string{caName}, nil)
	require.NoError(s.t, err)
	s.proxy, err = ca.NewProxy(s.server, filepath.Join(s.dir, "calls.jsonl"), ca.Transport{Server: door,
		Client: credentialsOf(s.t, s.clientTLS)})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, s.proxy.Close()) })
	p, err := ca.Start(ctx, ca.Options{Binary: loop, Kubeconfig: s.lab.Kubeconfig(lab.Consumer), Dir: s.dir,
		CloudConfig: s.cloudConfig(ctx, "cloud-config", s.proxy.Address, s.clientTLS)})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
}

// buildProduct compiles our binary from the sources beside this module.
func buildProduct(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(dir, "liqo-autoscaler")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, "./cmd/liqo-autoscaler")
	cmd.Dir = sources(t)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "build liqo-autoscaler: %s", said)
	return out
}

// sources is the folder of the product.
func sources(t *testing.T) string {
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Join(filepath.Dir(file), "..")
}

func (s *stack) startTemporal(ctx context.Context) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.temporal)
	require.NoError(s.t, err)
	p, err := proc.Start(proc.Spec{Name: "temporal", Path: filepath.Join(s.lab.Bin, "temporal"), LogDir: s.dir,
		Args: []string{
			"server", "start-dev", "--ip", host, "--port", port, "--headless",
			"--db-filename", filepath.Join(s.dir, "temporal.db"), "--log-level", "warn",
			"--search-attribute", "LiqoGroup=Keyword", "--search-attribute", "LiqoInstance=Keyword",
			"--search-attribute", "LiqoProvider=Keyword"}})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, func(ctx context.Context) error {
		_, err := s.cli(ctx, "workflow", "count")
		return err
	}))
}

// startWorker starts our worker. It needs no waiting: tasks wait in Temporal.
func (s *stack) startWorker() {
	s.t.Helper()
	args := []string{
		"worker", "--temporal-address", s.temporal, "--kubeconfig", filepath.Join(s.accounts, lab.Consumer+".kubeconfig"),
		"--offers", filepath.Join(s.dir, "offers.yaml"), "--backend", "liqo", "--hub", hub, "--tenant-role", tenantRole,
		"--metrics-listen", "", "--health-listen", ""}
	if s.market {
		args = append(args, "--market-namespace", chartNamespace)
	}
	if s.offerSecrets {
		args = append(args, "--offer-secrets-namespace", chartNamespace)
	}
	p, err := proc.Start(proc.Spec{Name: "worker", Path: s.binary, LogDir: s.dir, Dir: s.dir, Args: args})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	s.worker = p
}

// startServer starts our gRPC server and waits until it is ready: no Service leads CA to it before.
func (s *stack) startServer(ctx context.Context) {
	s.t.Helper()
	files := s.tlsFiles()
	args := []string{
		"grpcserver", "--temporal-address", s.temporal, "--config", filepath.Join(s.dir, "groups.yaml"), "--listen", s.server,
		"--tls-cert", files.Cert, "--tls-key", files.Key, "--tls-client-ca", files.ClientCA, "--tls-allowed-names", caName,
		"--metrics-listen", "", "--health-listen", s.health}
	if s.market {
		args = append(args, "--market-namespace", chartNamespace, "--kubeconfig",
			filepath.Join(s.accounts, serverAccount+".kubeconfig"))
	}
	p, err := proc.Start(proc.Spec{Name: "grpcserver", Path: s.binary, LogDir: s.dir, Dir: s.dir, Args: args})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(s.t, p.Until(ctx, s.serverReady))
}

func (s *stack) serverReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", response.Status)
	}
	return nil
}

func (s *stack) tlsFiles() grpcserver.TLSFiles {
	return grpcserver.TLSFiles{Cert: s.serverTLS.File("tls.crt"), Key: s.serverTLS.File("tls.key"),
		ClientCA: s.serverTLS.File("ca.crt")}
}

// stopAtEnd stops a process when the test ends, whatever ended it.
func (s *stack) stopAtEnd(p *proc.Process) {
	s.t.Cleanup(func() { _ = p.Stop(10 * time.Second) })
}

// cli runs the temporal CLI as an operator would.
func (s *stack) cli(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.lab.Bin, "temporal"), append(args, "--address", s.temporal)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("temporal %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// keepEvidence shows what our processes and Temporal say when the test failed, and saves the lab's logs from its end.
func (s *stack) keepEvidence() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := os.CopyFS(filepath.Join(s.dir, "lab"), os.DirFS(filepath.Join(s.lab.Root, "log"))); err != nil {
		s.t.Log(err)
	}
	workflows, err := s.cli(ctx, "workflow", "list", "--limit", "40")
	s.t.Logf("workflows (%v):\n%s", err, workflows)
	s.t.Logf("evidence is in %s; logs end:\n%s", s.dir, proc.Tails(s.dir, 15))
}
