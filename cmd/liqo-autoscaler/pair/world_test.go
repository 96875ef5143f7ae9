package pair

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// place is a simulated cluster.
type place struct {
	kube    *fake.Clientset
	objects *dynamicfake.FakeDynamicClient
	host    string
	tokens  []string        // all issued tokens
	void    map[string]bool // the revoked tokens
}

// world holds the clusters, by their contexts in the kubeconfig, and a folder for the files.
type world struct {
	t      *testing.T
	places map[string]*place
	folder string
	said   strings.Builder // all output except the document
}

// newWorld returns a world with the consumer munich and the provider milan.
func newWorld(t *testing.T) *world {
	w := &world{t: t, places: map[string]*place{}, folder: t.TempDir()}
	w.add("munich", "1.2.0")
	w.add("milan", "1.2.0")
	w.places["munich"].serves("cert-manager.io/v1")
	return w
}

// add adds a cluster with Liqo and one Node.
func (w *world) add(id, liqo string) *place {
	amounts := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"),
		"pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("100Gi")}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-controller-manager",
		Labels: map[string]string{"app.kubernetes.io/version": liqo}}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}
	p := &place{host: "https://" + id + ".example.com:6443", void: map[string]bool{}}
	p.kube = fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: types.UID("uid-" + id)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-clusterid-configmap",
			Labels: map[string]string{"app.kubernetes.io/name": "clusterid-configmap"}}, Data: map[string]string{idKey: id}},
		deployment,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Allocatable: amounts,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
	p.kube.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.33.1"}
	p.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			liqoKind("authentication", "resourceslices"): "ResourceSliceList",
			liqoKind("authentication", "tenants"):        "TenantList",
			liqoKind("offloading", "virtualnodes"):       "VirtualNodeList",
			liqoKind("core", "foreignclusters"):          "ForeignClusterList",
			{Version: "v1", Resource: "nodes"}:           "NodeList"})
	p.kube.PrependReactor("create", "serviceaccounts", p.issue)
	p.kube.PrependReactor("create", "tokenreviews", p.review)
	w.places[id] = p
	return p
}

func (p *place) serves(groupVersion string) {
	p.kube.Resources = append(p.kube.Resources, &metav1.APIResourceList{GroupVersion: groupVersion})
}

func (p *place) issue(a clienttesting.Action) (bool, runtime.Object, error) {
	if a.GetSubresource() != "token" {
		return false, nil, nil
	}
	end := time.Now().Add(90 * 24 * time.Hour)
	claims := fmt.Sprintf(`{"sub": "system:serviceaccount:liqo-autoscaler:consumer-munich", "exp": %d, "iat": %d, "n": %d}`,
		end.Unix(), time.Now().Unix(), len(p.tokens))
	token := "eyJhbGci." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmVk"
	p.tokens = append(p.tokens, token)
	return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: token,
		ExpirationTimestamp: metav1.NewTime(end)}}, nil
}

func (p *place) review(a clienttesting.Action) (bool, runtime.Object, error) {
	r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
	for _, token := range p.tokens {
		r.Status.Authenticated = r.Status.Authenticated || token == r.Spec.Token && !p.void[token]
	}
	return true, r, nil
}

// writes returns the requests that have changed something since the last call.
func (p *place) writes() (all []string) {
	for _, a := range append(p.kube.Actions(), p.objects.Actions()...) {
		if v := a.GetVerb(); v != "get" && v != "list" && a.GetResource().Resource != "tokenreviews" {
			all = append(all, v+" "+a.GetResource().Resource+"/"+a.GetSubresource())
		}
	}
	p.kube.ClearActions()
	p.objects.ClearActions()
	return all
}

// run runs setup for munich and milan, with args as additional arguments. It returns the standard output together
// with the report.
func (w *world) run(args ...string) (out string, err error) {
	w.t.Helper()
	out, report, err := w.split(append([]string{"--consumer-context", "munich", "--provider-context", "milan"},
		args...)...)
	return out + report, err
}

// split runs setup with exactly these arguments. It returns the standard output and the report separately.
func (w *world) split(args ...string) (out, report string, err error) {
	w.t.Helper()
	var stdout, stderr testkit.Buffer
	c := &connect.Common{}
	cmd := newSetup(c, func(side, _, context string) (*cluster, error) {
		p := w.places[context]
		if p == nil {
			return nil, fmt.Errorf("no context %s", context)
		}
		return &cluster{side: side, context: context, kube: p.kube, objects: p.objects,
			admin: &rest.Config{Host: p.host}}, nil
	})
	c.Register(cmd)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	if args[0] != "provider" {
		args = append(args, "--values", w.path("values.yaml"), "--ca-values", w.path("ca-values.yaml"))
	}
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(w.t.Context())
	w.said.WriteString(stderr.String())
	if args[0] != "provider" {
		w.said.WriteString(stdout.String())
	}
	if err != nil {
		w.said.WriteString(err.Error())
	}
	return stdout.String(), stderr.String(), err
}

func (w *world) path(name string) string { return filepath.Join(w.folder, name) }

func (w *world) file(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(w.path(name))
	require.NoError(w.t, err)
	return string(raw)
}

// tellsNoToken checks that no output except the document contains a token that was issued.
func (w *world) tellsNoToken() {
	w.t.Helper()
	for id, p := range w.places {
		for _, token := range p.tokens {
			require.NotContains(w.t, w.said.String(), token, id)
			require.NotContains(w.t, w.said.String(), strings.Split(token, ".")[1], id)
			require.NotContains(w.t, w.said.String(), base64.StdEncoding.EncodeToString([]byte(token)), id)
		}
	}
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s, err := w.places["munich"].kube.CoreV1().Secrets("liqo-autoscaler").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return s
}

// exists creates an object of the relation's kind. The field that the relation names has the value of the parameter
// other.
func (p *place) exists(t *testing.T, r relation, name, other string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.resource.GroupVersion().String(),
		"kind":     r.kind,
		"metadata": map[string]any{"name": name, "namespace": "x"}}}
	require.NoError(t, unstructured.SetNestedField(o.Object, other, r.field...))
	_, err := p.objects.Resource(r.resource).Namespace("x").Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}
