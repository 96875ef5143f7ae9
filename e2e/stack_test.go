package e2e_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/node"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// stack holds all processes between Cluster Autoscaler and the clusters.
type stack struct {
	t         *testing.T
	dir       string // logs, configs, the recorded calls
	begun     time.Time
	lab       *lab.Lab
	consumer  *cluster
	providers []*cluster
	proxy     *ca.Proxy
	client    protos.CloudProviderClient // calls grpcserver directly, without the proxy

	authority *testkit.Certificate // of the connection between CA and grpcserver
	serverTLS *testkit.Mount
	clientTLS *testkit.Mount
	accounts  string   // folder of kubeconfigs, each of an account with the permissions that deploy gives it
	tokens    []string // tokens in these kubeconfigs

	binary       string              // our program
	temporal     string              // host:port
	env          []string            // how our processes and the temporal CLI reach it
	production   *temporal.Server    // the Temporal server behind env; nil: a dev server
	servers      []string            // host:port of each grpcserver
	health       []string            // host:port of their /readyz
	server       *proc.Process       // the first server
	worker       *proc.Process       // the first worker
	secondWorker *proc.Process       // nil without withProduction
	logs         map[string][]string // paths of our processes' logs, by subcommand: "worker", "grpcserver"

	gateways     bool         // peerings have a network
	restarted    []time.Time  // starts of API servers, see young
	apiServer    int          // pid of the first provider's API server, after its restart
	market       bool         // the worker publishes the offers, and grpcserver reads them
	offerSecrets bool         // the worker takes Secrets in chartNamespace for offers, too
	rightsTaken  bool         // a test removes permissions, so refusals are expected
	alone        bool         // without Cluster Autoscaler; the test acts as CA
	replicated   bool         // see withProduction
	doors        *doors       // between the worker and the clusters, if set
	wants        int          // number of providers; default 2
	kubelet      bool         // the lab has a kubelet
	node         *node.Node   // node of the first provider that runs containers
	loop         string       // path of Cluster Autoscaler
	offerServer  *offerServer // the worker reads only its offers, not the file's
	clocks       clocks       // offsets of our processes' clocks
}

// withMarket makes the worker publish the offers in the consumer, where grpcserver reads them with the chart's
// permissions.
func withMarket(s *stack) { s.market = true }

// withOfferSecrets makes the worker read offers from Secrets of the consumer, in addition to the file.
func withOfferSecrets(s *stack) { s.offerSecrets = true }

// withRightsTaken is for suites in which a test removes our permissions, so that refusals are expected.
func withRightsTaken(s *stack) { s.rightsTaken = true }

// withoutCA leaves out Cluster Autoscaler and the proxy before the server.
func withoutCA(s *stack) { s.alone = true }

// withProduction uses Temporal as it runs in production in place of a dev server, with two workers and two gRPC
// servers.
func withProduction(s *stack) { s.replicated = true }

// withKubelet adds a kubelet to the lab.
func withKubelet(s *stack) { s.kubelet = true }

// envNetwork is the environment variable with the mode of the providers' network. With "gateway" the lab runs Liqo's
// gateways. Default: none.
const envNetwork = "LIQO_AUTOSCALER_E2E_NETWORK"

// envCA is the environment variable with the path of a Cluster Autoscaler that has the provider externalgrpc, such as
// a newer one. Default: package ca builds one.
const envCA = "CA_BIN"

// envPodStart is the environment variable with the time that the lab's kubelets take to start a pod; default 0.
const envPodStart = "LIQO_AUTOSCALER_E2E_POD_START"

// newStack builds and starts the whole stack. The end of the test stops it.
func newStack(ctx context.Context, t *testing.T, suite, groups, offers string, options ...func(*stack)) *stack {
	t.Helper()
	s := &stack{t: t, begun: time.Now(), dir: filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", suite),
		logs: map[string][]string{}}
	for _, option := range options {
		option(s)
	}
	require.NoError(t, os.RemoveAll(s.dir))
	require.NoError(t, os.MkdirAll(s.dir, 0o755))
	timing := newSteps(t)

	bin := filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "bin") // kept between runs for the build cache
	require.NoError(t, os.MkdirAll(bin, 0o755))
	s.binary = s.build(ctx, "liqo-autoscaler", bin)
	if !s.alone {
		var err error
		if s.loop = os.Getenv(envCA); s.loop == "" {
			s.loop, err = ca.Build(ctx, bin)
		}
		require.NoError(t, err)
	}
	timing.done("build")

	network := cmp.Or(os.Getenv(envNetwork), string(fleet.NetworkNone))
	s.gateways = network == string(fleet.NetworkGateway)
	podStart, err := time.ParseDuration(cmp.Or(os.Getenv(envPodStart), "0"))
	require.NoError(t, err, envPodStart)
	s.lab = lab.ForTest(ctx, t, lab.Options{Providers: cmp.Or(s.wants, 2), Gateways: s.gateways, PodStart: podStart,
		Kubelet: s.kubelet})
	timing.done("lab up")
	s.consumer = newCluster(t, s.lab, lab.Consumer)
	for _, name := range s.lab.Providers {
		s.providers = append(s.providers, newCluster(t, s.lab, name))
	}

	replicas := 1
	if s.replicated {
		replicas = 2
		s.startProduction(ctx)
	} else {
		s.startTemporal(ctx)
	}
	timing.done("temporal up")
	ports, err := proc.FreePorts(2 * replicas)
	require.NoError(t, err)
	s.servers, s.health = ports[:replicas], ports[replicas:]
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
	if s.offerServer != nil {
		s.offerServer.start(ctx, s)
	}
	s.worker = s.startWorker("worker")
	s.server = s.startServer(ctx, "grpcserver", 0)
	if s.replicated {
		s.secondWorker = s.startWorker("second-worker")
		s.startServer(ctx, "second-grpcserver", 1)
	}
	timing.done("product up")

	conn, err := ca.Dial(credentialsOf(s.t, s.clientTLS), s.servers...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.client = protos.NewCloudProviderClient(conn)
	if !s.alone {
		s.startCA(ctx)
		timing.done("cluster autoscaler up")
	}
	t.Cleanup(s.keepEvidence) // runs before the processes are stopped
	if !s.rightsTaken {
		t.Cleanup(s.nothingForbidden)
	}
	return s
}

// startCA starts Cluster Autoscaler's loop, and the proxy between it and grpcserver.
func (s *stack) startCA(ctx context.Context) {
	s.t.Helper()
	// At the proxy, CA sees the same TLS settings as at our server.
	door, err := grpcserver.TLS(s.tlsFiles(), []string{caName}, nil)
	require.NoError(s.t, err)
	s.proxy, err = ca.NewProxy(s.servers, filepath.Join(s.dir, "calls.jsonl"), ca.Transport{Server: door,
		Client: credentialsOf(s.t, s.clientTLS)})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, s.proxy.Close()) })
	p, err := ca.Start(ctx, ca.Options{Binary: s.loop, Kubeconfig: s.lab.Kubeconfig(lab.Consumer), Dir: s.dir,
		CloudConfig: s.cloudConfig(ctx, "cloud-config", s.proxy.Address, s.clientTLS)})
	require.NoError(s.t, err)
	s.stopAtEnd(p)
}

// buildProduct compiles one of our programs from the sources next to this module.
func buildProduct(ctx context.Context, t *testing.T, program, out string, flags ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", out}, flags,
		[]string{"./cmd/" + program})...)
	cmd.Dir = sources(t)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "build %s: %s", program, said)
	return out
}

// sources returns the folder of the product.
func sources(t *testing.T) string {
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Join(filepath.Dir(file), "..")
}

// keepEvidence does nothing when the test has passed. Otherwise it prints the list of workflows and the ends of all
// logs, and keeps the lab's logs.
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
