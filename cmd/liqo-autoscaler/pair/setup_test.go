package pair

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
)

// The first run creates all objects. The second run changes nothing, even if the provider's free capacity is now
// smaller.
func TestSecondRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	out, err := w.run("--price", "0.08", "--image", "registry.example.com/la")
	require.NoError(t, err)
	require.Contains(t, out, "consumer munich: context munich, Kubernetes v1.33.1, Liqo 1.2.0 in namespace liqo")
	require.Contains(t, out, "objects 29 created, 0 changed, 0 unchanged")
	require.Contains(t, out, "Secret liqo-autoscaler/milan: created")
	require.Contains(t, out, "next:\n  helm --kube-context munich upgrade --install liqo-autoscaler")
	require.Len(t, w.places["milan"].tokens, 1)

	s := w.secret("milan")
	require.Equal(t, map[string]string{"autoscaling": "true", labelSetup: "milan"}, s.Labels)
	require.NoError(t, secrets.Check(s.Namespace, s.Name, s.Data))
	access, err := clientcmd.RESTConfigFromKubeConfig(s.Data["kubeconfig"])
	require.NoError(t, err)
	require.Equal(t, "https://milan.example.com:6443", access.Host)
	require.Equal(t, w.places["milan"].tokens[0], access.BearerToken)
	var info offer
	require.NoError(t, yaml.UnmarshalStrict(s.Data["info"], &info))
	require.Equal(t, "8", info.Resources.Cpu().String())
	require.InDelta(t, 0.08, info.Price, 1e-9)
	require.Equal(t, "milan", info.Provider)

	values := w.file("values.yaml")
	for _, line := range []string{"temporal: {bundled: {enabled: true}}", "tls: {certManager: {enabled: true}}",
		"offerSecrets: {enabled: true}", `image: {repository: "registry.example.com/la"}`, "- id: standard"} {
		require.Contains(t, values, line)
	}
	require.Contains(t, w.file("ca-values.yaml"), "cloudProvider: externalgrpc")
	require.Contains(t, w.file("ca-values.yaml"), `clusterName: "munich"`)

	for _, p := range w.places {
		p.writes()
	}
	_, err = w.places["milan"].kube.CoreV1().Pods("apps").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.places["milan"].writes()
	out, err = w.run("--image", "registry.example.com/la")
	require.NoError(t, err)
	for _, line := range []string{"objects 0 created, 0 changed, 29 unchanged", "token: unchanged",
		"Secret liqo-autoscaler/milan: unchanged", "values.yaml: unchanged"} {
		require.Contains(t, out, line)
	}
	for id, p := range w.places {
		require.Empty(t, p.writes(), id)
	}
	require.Equal(t, s.Data, w.secret("milan").Data)
	w.tellsNoToken()
}

// setup replaces a revoked token. --lendable and --price replace the values in the Secret. Fields that an operator
// has added stay.
func TestSetupKeepsAddedFieldsOfOffers(t *testing.T) {
	w := newWorld(t)
	_, err := w.run()
	require.NoError(t, err)
	s := w.secret("milan")
	s.Data["info"] = append(s.Data["info"], "maxNodes: 3\nlabels: {city: milan}\n"...)
	_, err = w.places["munich"].kube.CoreV1().Secrets(s.Namespace).Update(t.Context(), s, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.places["milan"].void[w.places["milan"].tokens[0]] = true
	out, err := w.run("--lendable", "cpu=4", "--price", "0.5")
	require.NoError(t, err)
	require.Contains(t, out, "token: issued")
	require.Contains(t, out, "Secret liqo-autoscaler/milan: changed")
	info := string(w.secret("milan").Data["info"])
	require.Contains(t, info, `cpu: "4"`)
	require.Contains(t, info, "maxNodes: 3")
	require.Contains(t, info, "price: 0.5")
	require.Contains(t, string(w.secret("milan").Data["kubeconfig"]), w.places["milan"].tokens[1])
	w.tellsNoToken()
}

func TestDryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	out, err := w.run("--dry-run")
	require.NoError(t, err)
	for _, line := range []string{"objects 29 created", "token: would be requested",
		"Secret liqo-autoscaler/milan: created",
		"values.yaml: would be written", "dry run: nothing was changed"} {
		require.Contains(t, out, line)
	}
	for id, p := range w.places {
		require.Empty(t, p.writes(), id)
		require.Empty(t, p.tokens)
	}
	files, err := os.ReadDir(w.folder)
	require.NoError(t, err)
	require.Empty(t, files)
}

// setup refuses clusters and options that cannot work together, before it changes anything.
func TestImpossibleSetupIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		args   []string
		says   string
	}{
		"the same id":    {func(w *world) { w.rename("milan", "munich") }, nil, "have the same Liqo cluster id, munich"},
		"the same UID":   {func(w *world) { w.places["milan"] = w.places["munich"] }, nil, "are the same cluster, munich"},
		"loopback":       {at("https://127.0.0.1:41234"), nil, "with --provider-server"},
		"loopback, IPv6": {at("https://[::1]:6443"), nil, "with --provider-server"},
		"localhost":      {at("https://localhost:6443"), nil, "with --provider-server"},
		"Rancher":        {at("https://0.0.0.0:6443"), nil, "with --provider-server"},
		"no https":       {func(*world) {}, []string{"--provider-server", "milan:6443"}, "https://host:port"},
		"old Liqo":       {func(w *world) { w.add("milan", "0.10.0") }, nil, "versions before 1.0.2 are not supported"},
		"other Liqo":     {func(w *world) { w.add("milan", "1.1.0") }, nil, "different minor versions"},
		"no Liqo": {func(w *world) {
			require.NoError(t, w.places["milan"].kube.CoreV1().ConfigMaps("liqo").Delete(t.Context(), "liqo-clusterid-configmap",
				metav1.DeleteOptions{}))
		}, nil, "provider (context milan): Liqo is not installed"},
		"no cert-manager": {func(w *world) { w.places["munich"].kube.Resources = nil }, nil, "--tls-secret NAME"},
		"foreign Secret": {func(w *world) { w.makeSecret("milan", nil) }, nil,
			"Secret liqo-autoscaler/milan exists without the label"},
		"another's Secret": {func(w *world) { w.makeSecret("milan", map[string]string{labelSetup: "turin"}) }, nil,
			"is the offer of provider turin"},
		"offered already": {func(w *world) { w.makeSecret("old", map[string]string{labelSetup: "milan"}) }, nil,
			"give --name old"},
		"foreign Role": {func(w *world) { w.makeRole() }, nil,
			"ClusterRole liqo-autoscaler-consumer-munich exists without the label"},
		"large shape":  {func(*world) {}, []string{"--shape", "cpu=9,memory=1Gi,pods=10"}, "Give a smaller --shape"},
		"bad shape":    {func(*world) {}, []string{"--shape", "cpu=x"}, "--shape cpu=x: give positive amounts"},
		"no shape":     {func(*world) {}, []string{"--shape", "cpu=1"}, "describe no node group"},
		"bad network":  {func(*world) {}, []string{"--network", "mod=gateway"}, "--network"},
		"odd network":  {func(*world) {}, []string{"--network", "mode=tunnel"}, "info.network.mode"},
		"bad duration": {func(*world) {}, []string{"--duration", "1m"}, "give at least 10m"},
		"no folder":    {func(w *world) { w.folder += "/none" }, nil, "create the folder"},
		"same context": {func(*world) {}, []string{"--provider-context", "munich"}, "are the same: name two clusters"},
		"two ways":     {func(*world) {}, []string{"--plaintext", "--tls-secret", "x"}, "not both"},
		"old Kubernetes": {func(w *world) { w.places["milan"].version("v1.28.3") }, nil,
			"has no ValidatingAdmissionPolicies"},
		"a full provider": {func(w *world) {
			require.NoError(t, w.places["milan"].kube.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}))
		}, nil, "it cannot offer capacity"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			for _, p := range w.places {
				p.writes()
			}
			_, err := w.run(c.args...)
			require.ErrorContains(t, err, c.says)
			for id, p := range w.places {
				require.Empty(t, p.writes(), id)
			}
		})
	}
}

// The credentials contain the address of --provider-server, even if it is a loopback address.
func TestCredentialsContainTheGivenAddress(t *testing.T) {
	w := newWorld(t)
	w.places["milan"].host = "https://127.0.0.1:41234"
	_, err := w.run("--provider-server", "https://milan-control-plane:6443")
	require.NoError(t, err)
	require.Contains(t, string(w.secret("milan").Data["kubeconfig"]), "server: https://milan-control-plane:6443")
}

// setup never changes an existing file. It prints the differences.
func TestExistingFileIsNotChanged(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.WriteFile(w.path("values.yaml"), []byte("mine: 1\nofferSecrets: {enabled: true}\n"), 0o600))
	out, err := w.run("--temporal-address", "temporal:7233")
	require.NoError(t, err)
	require.Contains(t, out, "values.yaml: exists and is not changed")
	require.Contains(t, out, "\n  - mine: 1\n")
	require.Contains(t, out, "\n  + temporal: {address: \"temporal:7233\", setup: {enabled: true}}\n")
	require.NotContains(t, out, "  + offerSecrets")
	require.Equal(t, "mine: 1\nofferSecrets: {enabled: true}\n", w.file("values.yaml"))
}

// Objects that match the manifest and do not have labelSetup stay unchanged.
func TestUnmarkedObjectsStayUnchanged(t *testing.T) {
	w := newWorld(t)
	p := w.places["milan"]
	all, err := parse(provider.Manifest("munich", "liqo", provider.PodPolicies), p.objects)
	require.NoError(t, err)
	for _, o := range all {
		_, err := o.client.Create(t.Context(), o.Unstructured, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	p.writes()
	out, err := w.run()
	require.NoError(t, err)
	require.Contains(t, out, "objects 0 created, 0 changed, 29 unchanged")
	require.Equal(t, []string{"create serviceaccounts/token"}, p.writes())
	_, err = w.run("--undo")
	require.NoError(t, err)
	require.Empty(t, p.writes(), "they are not of setup")
}

// An object with labelSetup differs from the manifest. setup restores the fields of the manifest and keeps the
// object's other fields.
func TestMarkedObjectsAreRestored(t *testing.T) {
	w := newWorld(t)
	_, err := w.run()
	require.NoError(t, err)
	roles := w.places["milan"].objects.Resource(kinds["ClusterRole"])
	role, err := roles.Get(t.Context(), "liqo-autoscaler-consumer-munich", metav1.GetOptions{})
	require.NoError(t, err)
	role.Object["rules"] = []any{}
	role.SetAnnotations(map[string]string{"a": "b"})
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	out, err := w.run()
	require.NoError(t, err)
	require.Contains(t, out, "objects 0 created, 1 changed, 28 unchanged")
	role, err = roles.Get(t.Context(), "liqo-autoscaler-consumer-munich", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, role.Object["rules"])
	require.Equal(t, map[string]string{"a": "b"}, role.GetAnnotations())
}

// A hundred providers have a hundred Secrets. They do not change the values file.
func TestProvidersDoNotChangeTheValues(t *testing.T) {
	w := newWorld(t)
	for n := range 100 {
		id := fmt.Sprintf("p%d", n)
		w.add(id, "1.2.0")
		_, report, err := w.split("--consumer-context", "munich", "--provider-context", id)
		require.NoError(t, err)
		require.Equal(t, n > 0, strings.Contains(report+w.said.String(), "values.yaml: unchanged"))
	}
	all, err := w.places["munich"].kube.CoreV1().Secrets("liqo-autoscaler").List(t.Context(), metav1.ListOptions{
		LabelSelector: secrets.Label.String()})
	require.NoError(t, err)
	require.Len(t, all.Items, 100)
	w.tellsNoToken()
}

// at returns a change of the world in which the provider milan has this address.
func at(host string) func(*world) { return func(w *world) { w.places["milan"].host = host } }

func (w *world) rename(place, id string) {
	maps := w.places[place].kube.CoreV1().ConfigMaps("liqo")
	cm, err := maps.Get(w.t.Context(), "liqo-clusterid-configmap", metav1.GetOptions{})
	require.NoError(w.t, err)
	cm.Data[idKey] = id
	_, err = maps.Update(w.t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func (w *world) makeSecret(name string, labels map[string]string) {
	_, err := w.places["munich"].kube.CoreV1().Secrets("liqo-autoscaler").Create(w.t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) makeRole() {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind": "ClusterRole", "metadata": map[string]any{"name": "liqo-autoscaler-consumer-munich"}, "rules": []any{}}}
	_, err := w.places["milan"].objects.Resource(kinds["ClusterRole"]).Create(w.t.Context(), o,
		metav1.CreateOptions{})
	require.NoError(w.t, err)
}
