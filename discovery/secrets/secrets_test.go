package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const (
	namespace  = "liqo-autoscaler"
	goodInfo   = `{"resources":{"cpu":"5","memory":"4Gi","pods":"100","nvidia.com/gpu":"1"},"labels":{"country":"france","provider":"liqo","city":"paris","hasGPU":"true"},"hasNat":false}`
	kubeconfig = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://%s.example'}}]\nusers: " +
		"[{name: u, user: {token: very-secret}}]\n"
)

func secret(name string, change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"autoscaling": "true"}},
		Data: map[string][]byte{
			"info":       []byte(goodInfo),
			"kubeconfig": []byte(strings.Replace(kubeconfig, "%s", name, 1)),
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func start(t *testing.T, client *fake.Clientset) *secrets.Source {
	t.Helper()
	s, err := secrets.New(client, secrets.Options{Namespace: namespace})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	// In the fake cluster, a watch receives only changes after its start. A change between the list and the start of
	// the watch is lost.
	eventually(t, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" })
	})
	return s
}

func names(t *testing.T, s *secrets.Source) []string {
	t.Helper()
	offers, _, err := s.List(context.Background())
	require.NoError(t, err)
	out := []string{}
	for _, o := range offers {
		out = append(out, o.Name)
	}
	return out
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, 2*time.Minute, 5*time.Millisecond)
}

func TestSecretsOfThePrototypeAreRead(t *testing.T) {
	t.Parallel()
	unlabelled := secret("other", func(s *corev1.Secret) { s.Labels = nil })
	elsewhere := secret("elsewhere", func(s *corev1.Secret) { s.Namespace = "default" })
	s := start(t, fake.NewClientset(secret("remote2"), unlabelled, elsewhere))
	offers, problems, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, offers, 1)
	o := offers[0]
	require.Equal(t, "remote2", o.Name)
	require.Empty(t, o.Provider)
	require.Equal(t, fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: namespace, Name: "remote2",
		Key: "kubeconfig"}}, o.Credentials)
	require.Equal(t, map[string]string{"country": "france", "provider": "liqo", "city": "paris", "hasGPU": "true",
		"hasNat": "false"}, o.Labels)
	require.Equal(t, "5", o.Lendable.Cpu().String())
	gpu := o.Lendable["nvidia.com/gpu"]
	require.EqualValues(t, 1, gpu.Value())

	// The format has no field for ephemeral storage. The offer still fits a group that requests ephemeral storage.
	spec := fleet.InstanceSpec{ID: "g", Shape: o.Lendable.DeepCopy()}
	spec.Shape[corev1.ResourceEphemeralStorage] = *o.Lendable.Memory()
	o.Provider = "p"
	require.Equal(t, "p", choice.Choose(spec, []choice.Candidate{{Offer: o}}, nil, choice.Rank{}, time.Now()).Chosen)
}

// A cluster behind NAT accepts no connections from outside. The gateway server therefore runs on the consumer, unless
// the Secret sets another location.
func TestGatewayServerOfAClusterBehindNATIsOnTheConsumer(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]*fleet.Network{
		"hasNat: false": nil,
		"hasNat: true":  {Options: []byte(`{"serverLocation":"consumer"}`)},
		"hasNat: true\nnetwork: {serverLocation: provider}": {Options: []byte(`{"serverLocation":"provider"}`)},
		"hasNat: true\nnetwork: {mode: none}":               {Mode: fleet.NetworkNone},
		"hasNat: false\nnetwork: {serviceType: NodePort}":   {Options: []byte(`{"serviceType":"NodePort"}`)},
		"hasNat: true\nnetwork: {mode: gateway, mtu: 1280}": {Mode: fleet.NetworkGateway,
			Options: []byte(`{"serverLocation":"consumer","mtu":1280}`)},
	} {
		s := start(t, fake.NewClientset(secret("milan", func(s *corev1.Secret) {
			s.Data["info"] = []byte("resources: {cpu: 16, memory: 64Gi, pods: 110}\n" + more + "\n")
		})))
		offers, problems, err := s.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
		require.Equal(t, want, offers[0].Network, more)
	}
}

func TestSecretsAreReadAsYAMLAndByOurKeys(t *testing.T) {
	t.Parallel()
	s := start(t, fake.NewClientset(secret("milan", func(s *corev1.Secret) {
		s.Data["info"] = []byte("name: milan\nresources: {cpu: 16, memory: 64Gi, pods: 110}\nlabels: {hasGPU: true, zone: " +
			"39}\n" +
			"price: 0.5\nprices: {cpu: 0.03}\ncurrency: EUR\nclass: gold\n" +
			"maxNodes: 1\nlingerSeconds: 0\nunpeer: never\nexpires: 2030-01-01T00:00:00Z\n")
	})))
	offers, problems, err := s.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	o := offers[0]
	require.Equal(t, map[string]string{"hasGPU": "true", "zone": "39"}, o.Labels)
	require.InDelta(t, 0.5, o.Price, 1e-9)
	require.Equal(t, map[corev1.ResourceName]float64{"cpu": 0.03}, o.Prices)
	require.Equal(t, "EUR", o.Currency)
	require.Equal(t, 1, o.MaxNodes)
	require.Zero(t, o.Linger())
	require.Equal(t, fleet.UnpeerNever, o.Unpeer)
	require.Equal(t, "gold", o.Class)
	require.Equal(t, 2030, o.Expires.Year())
}

func TestMalformedSecretsAreReportedByName(t *testing.T) {
	t.Parallel()
	set := func(key, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	unset := func(key string) func(*corev1.Secret) { return func(s *corev1.Secret) { delete(s.Data, key) } }
	for name, c := range map[string]struct {
		change func(*corev1.Secret)
		want   []string
	}{
		"no kubeconfig":    {unset("kubeconfig"), []string{"kubeconfig: is missing"}},
		"empty kubeconfig": {set("kubeconfig", " \n"), []string{"kubeconfig: is missing"}},
		"broken config":    {set("kubeconfig", "clusters: very-secret"), []string{"kubeconfig: is not a kubeconfig"}},
		"swelling config": {set("kubeconfig", "very: &a "+strings.Repeat("secret", 5_000)+"\nx: ["+strings.Repeat("*a,",
			2_000)+"]\n"), []string{"kubeconfig: is not a kubeconfig"}},
		"swelling info": {set("info", "name: &a "+strings.Repeat("secret", 5_000)+"\nx: ["+strings.Repeat("*a,",
			2_000)+"]\n"), []string{"info: YAML aliases expand to more than"}},
		"no cluster":      {set("kubeconfig", "apiVersion: v1\nkind: Config\n"), []string{"kubeconfig: names no cluster"}},
		"no info":         {unset("info"), []string{"info: is missing"}},
		"empty info":      {set("info", ""), []string{"info: the document is empty"}},
		"info is no YAML": {set("info", "{"), []string{"info: not YAML: line 1"}},
		"unknown key": {set("info", strings.Replace(goodInfo, "hasNat", "hasNAT", 1)),
			[]string{"info.hasNAT: unknown field: remove it, or use one of"}},
		"bad amount": {set("info", strings.Replace(goodInfo, `"5"`, `"five"`, 1)),
			[]string{`info.resources.cpu: got "five", want a quantity`}},
		"no pods": {set("info", strings.Replace(goodInfo, `"pods":"100",`, "", 1)),
			[]string{"info.resources.pods: is missing"}},
		"gpu": {set("info", strings.Replace(goodInfo, "nvidia.com/gpu", "gpu", 1)),
			[]string{"info.resources.gpu: not a resource of Kubernetes"}},
		"bad label": {set("info", strings.Replace(goodInfo, "paris", "Reggio Emilia", 1)),
			[]string{`info.labels.city: the value "Reggio Emilia"`}},
		"label is a list": {set("info", strings.Replace(goodInfo, `"paris"`, `["a"]`, 1)),
			[]string{"info.labels.city: got a list, want text"}},
		"two faults": {func(s *corev1.Secret) { unset("kubeconfig")(s); set("info", `{"prize":1}`)(s) },
			[]string{"kubeconfig: is missing", "info.prize: unknown field"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fake.NewClientset(secret("bad", c.change), secret("good")))
			offers, problems, err := s.List(t.Context())
			require.NoError(t, err)
			require.Len(t, offers, 1)
			require.Equal(t, "good", offers[0].Name)
			require.Len(t, problems, 1)
			require.Equal(t, "bad", problems[0].Offer)
			for _, want := range c.want {
				require.Contains(t, problems[0].Message, want)
			}
			require.NotContains(t, problems[0].Message, "very-secret")
		})
	}
}

func TestChangedSecretsAreListed(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(secret("a"))
	s := start(t, client)
	api := client.CoreV1().Secrets(namespace)
	require.Equal(t, []string{"a"}, names(t, s))

	_, err := api.Create(t.Context(), secret("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { return len(names(t, s)) == 2 })

	_, err = api.Update(t.Context(), secret("b", func(s *corev1.Secret) { s.Data["info"] = []byte("x") }),
		metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { _, problems, _ := s.List(t.Context()); return len(problems) == 1 })

	require.NoError(t, api.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	eventually(t, func() bool { return len(names(t, s)) == 0 })
}

// The channel of a watch closes. The source starts a new watch, and lists later changes. (In the prototype
// liqo-autoscaling-system the list then stayed out of date.)
func TestClosedWatchIsRestarted(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(secret("a"))
	var mu sync.Mutex
	var open []*watch.FakeWatcher
	client.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		w := watch.NewFake() // sends no event, so only a new list can show the change
		open = append(open, w)
		return true, w, nil
	})
	watches := func() int { mu.Lock(); defer mu.Unlock(); return len(open) }
	s := start(t, client)
	eventually(t, func() bool { return watches() == 1 })

	_, err := client.CoreV1().Secrets(namespace).Create(t.Context(), secret("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	mu.Lock()
	open[0].Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
		Message: "too old"})
	open[0].Stop()
	mu.Unlock()
	eventually(t, func() bool { return watches() >= 2 })
	eventually(t, func() bool { return len(names(t, s)) == 2 })

	mu.Lock()
	last := len(open)
	open[last-1].Stop() // ends without an event
	mu.Unlock()
	eventually(t, func() bool { return watches() > last })
	mu.Lock()
	open[len(open)-1].Add(secret("c", func(s *corev1.Secret) { s.ResourceVersion = "9" }))
	mu.Unlock()
	eventually(t, func() bool { return len(names(t, s)) == 3 })
}

func TestBrokenWatchKeepsTheLastOffers(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(secret("a"))
	var mu sync.Mutex
	var down error
	var current *watch.FakeWatcher
	client.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
		mu.Lock()
		defer mu.Unlock()
		if down != nil {
			return true, nil, down
		}
		current = watch.NewFake()
		return true, current, nil
	})
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		return down != nil, nil, down
	})
	s := start(t, client)
	eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return current != nil })

	mu.Lock()
	down = errors.New("connection refused")
	current.Stop()
	mu.Unlock()
	eventually(t, func() bool {
		offers, problems, err := s.List(t.Context())
		return err == nil && len(offers) == 1 && len(problems) == 1 &&
			strings.Contains(problems[0].Message, "cannot be watched since") && strings.Contains(problems[0].Message,
			"connection refused")
	})
	mu.Lock()
	down = nil
	mu.Unlock()
	eventually(t, func() bool { _, problems, _ := s.List(t.Context()); return len(problems) == 0 })
}

// The source lists a thousand Secrets, because the prototype liqo-autoscaling-system states no maximum number of
// clusters.
func TestThousandSecretsAreListed(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		all := &corev1.SecretList{}
		for n := range 1000 {
			all.Items = append(all.Items, *secret(fmt.Sprint("p", n)))
		}
		return true, all, nil
	})
	s, err := secrets.New(client, secrets.Options{Namespace: namespace, SyncWait: 10 * time.Minute})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	offers, problems, err := s.List(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, offers, 1000)
	cancel()
	require.NoError(t, <-ended)
}

func TestListBeforeTheFirstSyncFails(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("secrets is forbidden")
	})
	s, err := secrets.New(client, secrets.Options{Namespace: namespace, SyncWait: 20 * time.Millisecond})
	require.NoError(t, err)
	_, _, err = s.List(t.Context())
	require.ErrorContains(t, err,
		"list secrets autoscaling=true in namespace liqo-autoscaler: not finished yet: context deadline exceeded")

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	eventually(t, func() bool {
		_, _, err := s.List(t.Context())
		return err != nil && strings.Contains(err.Error(), "secrets is forbidden")
	})
	cancel()
	require.NoError(t, <-done)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := secrets.New(fake.NewClientset(), secrets.Options{})
	require.ErrorContains(t, err, "the namespace is missing")
}

// byServer identifies a cluster by the current server address in the Secret's kubeconfig, in the same way as the real
// backend.
type byServer struct{ client *fake.Clientset }

func (b byServer) Identify(ctx context.Context, c fleet.Credentials) (string, error) {
	s, err := b.client.CoreV1().Secrets(c.SecretRef.Namespace).Get(ctx, c.SecretRef.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(s.Data["kubeconfig"]), "https://")
	id, _, _ := strings.Cut(rest, ".")
	return id, nil
}

func TestSecondSecretOfAClusterIsReported(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(secret("milan"),
		secret("copy", func(s *corev1.Secret) { s.Data["kubeconfig"] = secret("milan").Data["kubeconfig"] }))
	s := start(t, client)
	catalog := discovery.Resolve(s, byServer{client}, discovery.Options{SecretVersion: s.Version})
	offers, problems, err := catalog.Offers(t.Context())
	require.NoError(t, err)
	require.Empty(t, offers)
	require.Equal(t, "secrets: offer copy: is of provider milan, like offer secrets/milan: none is used until one "+
		"declares provider: milan", problems[0].String())

	rotated := secret("copy", func(s *corev1.Secret) { s.Data["kubeconfig"] = secret("rome").Data["kubeconfig"] })
	_, err = client.CoreV1().Secrets(namespace).Update(t.Context(), rotated, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		offers, problems, err := catalog.Offers(t.Context())
		return err == nil && len(problems) == 0 && len(offers) == 2 && offers[0].Provider == "rome" &&
			offers[1].Provider == "milan"
	})
}

func TestOnlyLabelledSecretsAreListedAndKept(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(secret("a"), secret("b"))
	s := start(t, client)
	require.Equal(t, []string{"a", "b"}, names(t, s))
	watching := func() bool {
		for _, action := range client.Actions() {
			if w, ok := action.(clienttesting.WatchAction); ok {
				return w.GetWatchRestrictions().Labels.String() == secrets.Label.String()
			}
		}
		return false
	}
	eventually(t, watching)
	for _, action := range client.Actions() {
		if l, ok := action.(clienttesting.ListAction); ok {
			require.Equal(t, secrets.Label.String(), l.GetListRestrictions().Labels.String())
			require.Equal(t, namespace, l.GetNamespace())
		}
	}
	_, err := client.CoreV1().Secrets(namespace).Update(t.Context(),
		secret("b", func(s *corev1.Secret) { s.Labels = nil }), metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool { return len(names(t, s)) == 1 })
}
