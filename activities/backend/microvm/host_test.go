package microvm

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const (
	hostToken = "h0st-t0ken"
	joinToken = "j0in-t0ken"

	// testUserData is the user data that a testHost reads when it boots a machine. A real host would run a shell
	// script.
	testUserData = "token " + joinToken + "\nname {{.Name}}\nlabels {{join .Labels \",\"}}\ntaints {{join .Taints \",\"}}"
	testOverhead = 64 << 20
)

var testShape = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
	corev1.ResourcePods: resource.MustParse("20"),
}

// testHost is a host with one host group. Its machines register their Nodes through the cluster's API.
type testHost struct {
	id      string
	cluster client.Client
	server  *httptest.Server

	mu       sync.Mutex
	machines map[string]machine // by hostname
	made     int
	requests []string // changing requests only, as "METHOD path"
	behave   behaviour
}

// behaviour lists how a testHost deviates from a correct host. The zero value is a correct host.
type behaviour struct {
	cut     bool                                              // it does not answer
	stalled bool                                              // it does not list its machines
	gone    bool                                              // it has no host group
	refuses fleet.RefusingKind                                // it accepts no new machines
	reason  string                                            // the message of this refusal
	most    int64                                             // largest number of CPUs of a machine; 0: any
	create  int                                               // HTTP status of requests for machines; 0: creates them
	lost    bool                                              // answers to these requests are lost
	late    int                                               // number of lists without the machine
	answer  func(w http.ResponseWriter, r *http.Request) bool // may answer a request in place of the host
}

func newTestHost(t *testing.T, cluster client.Client, id string) *testHost {
	t.Helper()
	h := &testHost{id: id, cluster: cluster, machines: map[string]machine{}}
	h.server = httptest.NewTLSServer(h)
	t.Cleanup(h.server.Close)
	return h
}

// document returns the access to the host in the form that users write.
func (h *testHost) document() map[string]any {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	return map[string]any{"url": h.server.URL, "token": hostToken, "caData": string(ca), "hostGroup": h.id,
		"overhead": map[string]string{"memory": fmt.Sprint(testOverhead)}, "userData": testUserData}
}

func (h *testHost) provider(t *testing.T) fleet.Provider {
	return fleet.Provider{ID: h.id, Credentials: credentialsFile(t, h.document())}
}

func credentialsFile(t *testing.T, document map[string]any) fleet.Credentials {
	t.Helper()
	content, err := yaml.Marshal(document)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "host.yaml")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return fleet.Credentials{KubeconfigFile: path}
}

// behaves changes the behaviour of the host. It returns a function that makes the host correct again.
func (h *testHost) behaves(b behaviour) func(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behave = b
	if b.gone || b.refuses == fleet.RefusingDrained {
		clear(h.machines)
	}
	return func(context.Context) error {
		h.behaves(behaviour{})
		return nil
	}
}

func (h *testHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behave.cut {
		panic(http.ErrAbortHandler)
	}
	if h.behave.answer != nil && h.behave.answer(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+hostToken {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	nodes := "/hostgroup/" + h.id + "/nodes"
	switch {
	case r.URL.Path == "/hostgroup":
		h.tell(w, h.groups())
	case h.behave.gone, !strings.HasPrefix(r.URL.Path, nodes):
		w.WriteHeader(http.StatusNotFound)
	case h.behave.stalled:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Method == http.MethodGet:
		h.tell(w, h.list())
	case r.Method == http.MethodPost:
		h.create(w, r)
	default:
		h.requests = append(h.requests, r.Method+" "+r.URL.Path)
		delete(h.machines, strings.TrimPrefix(r.URL.Path, nodes+"/"))
	}
}

func (h *testHost) tell(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (h *testHost) groups() []hostGroup {
	groups := []hostGroup{{Name: "another"}}
	if !h.behave.gone {
		groups = append(groups, hostGroup{Name: h.id, CPUs: h.behave.most, Refuses: h.behave.refuses,
			Reason: h.behave.reason})
	}
	return groups
}

// list returns the machines that the host lists with its current behaviour.
func (h *testHost) list() []machine {
	all := []machine{{Hostname: "somebody-else-1", Tags: []string{"theirs"}}}
	if h.behave.late > 0 {
		h.behave.late--
		return all
	}
	for _, m := range h.machines {
		m.UserData = ""
		all = append(all, m)
	}
	return all
}

func (h *testHost) create(w http.ResponseWriter, r *http.Request) {
	var m machine
	if h.behave.create != 0 || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(max(h.behave.create, http.StatusBadRequest))
		fmt.Fprint(w, m.UserData)
		return
	}
	h.requests = append(h.requests, r.Method+" "+r.URL.Path)
	h.made++
	m.Hostname = fmt.Sprintf("%s-%d", h.id, h.made)
	h.machines[m.Hostname] = m
	go h.boot(m)
	if h.behave.lost {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	h.tell(w, map[string]string{"hostname": m.Hostname})
}

// boot registers the machine's Node. A little later it makes the Node Ready, if the machine still exists.
func (h *testHost) boot(m machine) {
	var node *corev1.Node
	h.while(m, func() error {
		node = m.node()
		return h.cluster.Create(context.Background(), node)
	})
	h.while(m, func() error {
		before := node.DeepCopy()
		node.Status.Conditions[0].Status = corev1.ConditionTrue
		return client.IgnoreNotFound(h.cluster.Status().Patch(context.Background(), node, client.MergeFrom(before)))
	})
}

func (h *testHost) while(m machine, do func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, runs := h.machines[m.Hostname]; !runs {
		return
	}
	if err := do(); err != nil {
		panic(fmt.Sprintf("machine %s: %v", m.Hostname, err))
	}
}

// node returns the Node that the machine registers according to its user data.
func (m machine) node() *corev1.Node {
	told := map[string]string{}
	for line := range strings.Lines(m.UserData) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		told[key] = value
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: told["name"], Labels: map[string]string{
		corev1.LabelHostname: told["name"], corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	for _, label := range strings.Split(told["labels"], ",") {
		key, value, _ := strings.Cut(label, "=")
		node.Labels[key] = value
	}
	for _, taint := range strings.Split(told["taints"], ",") {
		key, rest, _ := strings.Cut(taint, "=")
		value, effect, _ := strings.Cut(rest, ":")
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	size := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(m.CPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(m.RAM-testOverhead, resource.BinarySI),
		corev1.ResourcePods:   testShape[corev1.ResourcePods],
	}
	node.Status = corev1.NodeStatus{Capacity: size, Allocatable: size,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: "KubeletNotReady"}}}
	return node
}

// restart restarts the kubelet of a Node's machine, so that the kubelet registers the Node again.
func (h *testHost) restart(ctx context.Context, name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.machines {
		if node := m.node(); node.Name == name {
			node.Status.Conditions[0].Status = corev1.ConditionTrue
			return h.cluster.Create(ctx, node)
		}
	}
	return fmt.Errorf("host %s has no machine of Node %s", h.id, name)
}

// tagged returns the machines of the attempt.
func (h *testHost) tagged(attempt string) (found []machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.machines {
		if slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.HasSuffix(tag, "/"+attempt) }) {
			found = append(found, m)
		}
	}
	return found
}

// changes returns the changing requests so far.
func (h *testHost) changes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// requireNoSecret fails when a token is in a record or in a Node.
func requireNoSecret(t *testing.T, cluster client.Client) {
	t.Helper()
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.NodeList{}} {
		require.NoError(t, cluster.List(t.Context(), list))
		text, err := json.Marshal(list)
		require.NoError(t, err)
		assert.NotContains(t, string(text), hostToken)
		assert.NotContains(t, string(text), joinToken)
	}
}
