package liqo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/liqo"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The tests TestLab* need real Liqo. `make e2e SUITE=backend` starts three clusters, which are called the lab, and
// runs these tests there. Without a lab these tests are skipped.

const (
	consumer = "consumer" // names of the lab's clusters, and their Liqo cluster ids
	group    = "contract"
)

// lab is the running lab.
type lab struct {
	root, bin string
	clusters  map[string]*cluster
	rights    *liqo.TenantRights // permissions of the worker's account; accounts sets them
}

type cluster struct {
	name       string
	kubeconfig string // the administrator's kubeconfig
	account    string // the kubeconfig of backends: kubeconfig, or the result of accounts
	kube       kubernetes.Interface
	any        dynamic.Interface
	cut        bool // whether the test has stopped its API server
	// grant makes our tenant namespace on a provider again, with our permissions in it. It is nil when the worker makes
	// the namespace itself.
	grant func(context.Context, *cluster) error
}

func theLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{root: os.Getenv("LIQO_AUTOSCALER_LAB"), bin: os.Getenv("LAB_BIN"), clusters: map[string]*cluster{}}
	if l.root == "" {
		t.Skip("needs real Liqo: make e2e SUITE=backend")
	}
	for _, name := range []string{consumer, "provider1", "provider2"} {
		kubeconfig := filepath.Join(l.root, name+".kubeconfig")
		c := &cluster{name: name, kubeconfig: kubeconfig, account: kubeconfig}
		config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
		require.NoError(t, err)
		config.QPS, config.Burst = 100, 200
		c.kube, err = kubernetes.NewForConfig(config)
		require.NoError(t, err)
		c.any, err = dynamic.NewForConfig(config)
		require.NoError(t, err)
		l.clusters[name] = c
	}
	if os.Getenv("LAB_ACCOUNTS") != "" {
		l.accounts(t)
	}
	l.clear(t)
	return l
}

// clear removes the objects that a failed test has left.
func (l *lab) clear(t *testing.T) {
	t.Helper()
	b := l.backend(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	found, err := b.List(ctx, backend.Scope{})
	require.NoError(t, err)
	for _, f := range found {
		require.NoError(t, b.Return(ctx, f.Attempt, nil), "clear")
	}
	for n := 1; n <= 2; n++ {
		require.NoError(t, b.RemovePeering(ctx, l.provider(n), nil), "clear")
	}
}

// refusedFor is the time for which a backend of the lab does not use a provider that has removed our Tenant. It is
// longer than the removal of the peering, which takes some 15 s.
const refusedFor = 40 * time.Second

// backend returns a new backend on the lab's consumer. It shares no memory with other backends, like a backend in
// another process.
func (l *lab) backend(t *testing.T) *liqo.Backend { return l.backendFor(t, refusedFor) }

// backendFor returns a backend that waits for refusedFor after a provider has removed our Tenant.
func (l *lab) backendFor(t *testing.T, refusedFor time.Duration) *liqo.Backend {
	t.Helper()
	c := l.config(t)
	c.RefusedFor, c.AnyLiqo = refusedFor, true // the tests join several nodes on one provider, with Liqo 1.1 too
	return newBackend(t, c)
}

// config returns the configuration of a worker on the lab's consumer.
func (l *lab) config(t *testing.T) liqo.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", l.clusters[consumer].account)
	require.NoError(t, err)
	return liqo.Config{Consumer: config, RefusedFor: refusedFor, TenantRights: l.rights}
}

func newBackend(t *testing.T, c liqo.Config) *liqo.Backend {
	t.Helper()
	b, err := liqo.New(c)
	require.NoError(t, err)
	return b
}

// oneSlice reports whether the lab's Liqo loses pods when a provider has several nodes.
func oneSlice() bool { return strings.HasPrefix(os.Getenv("LIQO_AUTOSCALER_LAB_LIQO"), "v1.1") }

func (l *lab) provider(n int) fleet.Provider {
	id := "provider" + strconv.Itoa(n)
	return fleet.Provider{ID: id, Credentials: fleet.Credentials{KubeconfigFile: l.clusters[id].account},
		Network: &fleet.Network{Mode: fleet.NetworkNone}}
}

// requireNothing fails the test when an object of ours is left on any cluster.
func (l *lab) requireNothing(t *testing.T) {
	t.Helper()
	found, err := l.objects(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// signal sends a signal to a process of the lab. The parameter process is its name in <root>/pids.
func (l *lab) signal(process string, signal syscall.Signal) error {
	pid, err := l.pid(process)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// pid returns the id of the newest process of that name.
func (l *lab) pid(process string) (pid int, err error) {
	pids, err := os.ReadFile(filepath.Join(l.root, "pids"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(pids)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[1] == process {
			if pid, err = strconv.Atoi(fields[0]); err != nil {
				return 0, fmt.Errorf("find process %s: %w", process, err)
			}
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("find process %s: not in %s/pids", process, l.root)
	}
	return pid, nil
}

// attempt returns an attempt that no other test uses.
func attempt(sequence int, p fleet.Provider) fleet.Attempt {
	return fleet.Attempt{Group: group, Instance: fleet.InstanceName(group, fleet.NewEpoch(time.Now()), sequence),
		Number: 1, Provider: p}
}

func nodeSpec(a fleet.Attempt) backend.NodeSpec {
	return backend.NodeSpec{Attempt: a, Shape: nodeShape()}
}

func nodeShape() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods:   resource.MustParse("20"),
	}
}

func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, condition)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
