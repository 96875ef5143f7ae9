package discovery_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const goodOffer = `
name: milan
credentials: {secretRef: {namespace: liqo-autoscaler, name: milan}}
lendable: {cpu: 16, memory: 64Gi, pods: 110, nvidia.com/gpu: 0}
maxNodes: 4
labels: {country: it, example.com/tier: edge}
price: 0.12
prices: {cpu: 0.03, memory: 0.004, nvidia.com/gpu: 1.2}
currency: EUR
lingerSeconds: 0
unpeer: never
class: gold
expires: 2027-01-01T00:00:00Z
`

func TestParseOfferKeepsAllFields(t *testing.T) {
	spec, err := discovery.ParseOffer([]byte(goodOffer))
	require.NoError(t, err)
	o := spec.Offer()
	require.Equal(t, "milan", o.Name)
	require.Empty(t, o.Provider, "the provider is read from the cluster")
	require.Equal(t, &fleet.SecretRef{Namespace: "liqo-autoscaler", Name: "milan", Key: "kubeconfig"},
		o.Credentials.SecretRef)
	require.Equal(t, "16", o.Lendable.Cpu().String())
	require.Equal(t, 4, o.MaxNodes)
	require.Equal(t, map[string]string{"country": "it", "example.com/tier": "edge"}, o.Labels)
	require.InDelta(t, 0.12, o.Price, 1e-9)
	require.Equal(t, map[corev1.ResourceName]float64{"cpu": 0.03, "memory": 0.004, "nvidia.com/gpu": 1.2}, o.Prices)
	require.Equal(t, "EUR", o.Currency)
	discovery.CopyOffer(o).Prices["cpu"], spec.Prices["cpu"] = 5, 5
	require.InDelta(t, 0.03, o.Prices["cpu"], 0, "a copy is a copy")
	require.Equal(t, time.Duration(0), o.Linger())
	require.Equal(t, fleet.UnpeerNever, o.Unpeer)
	require.Equal(t, "gold", o.Class)
	require.Equal(t, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), o.Expires.UTC())
}

func TestParseOfferFaults(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no name":  {"name: milan", "", "name: is missing"},
		"bad name": {"name: milan", "name: Milan_1", `name: "Milan_1" is not a DNS-1123 subdomain`},
		"provider": {"maxNodes: 4", "provider: Milan", `provider: "Milan" is not a DNS-1123 label`},
		"unknown field": {"maxNodes: 4", "lender: milan",
			"line 5: lender: unknown field: remove it, or use one of class, credentials, currency, expires,"},
		"no credentials": {"credentials: {secretRef: {namespace: liqo-autoscaler, name: milan}}", "",
			"credentials: give exactly one of"},
		"both credentials":  {"{secretRef:", "{kubeconfigFile: a, secretRef:", "credentials: give exactly one of"},
		"pasted kubeconfig": {"{secretRef: {namespace: liqo-autoscaler, name: milan}}", `{kubeconfigFile: "apiVersion: v1\nkind: Config"}`, "credentials.kubeconfigFile: must be a path on one line"},
		"secret name":       {"name: milan}}", "name: A}}", `credentials.secretRef.name: "A" is not`},
		"secret namespace":  {"namespace: liqo-autoscaler, ", "", "credentials.secretRef.namespace: is missing"},
		"secret key":        {"name: milan}}", "name: milan, key: a/b}}", `credentials.secretRef.key: "a/b" is not a key`},
		"no lendable": {"lendable: {cpu: 16, memory: 64Gi, pods: 110, nvidia.com/gpu: 0}", "",
			"lendable: is missing"},
		"no pods":  {"pods: 110, ", "", "lendable.pods: is missing; every node has pods"},
		"bad cpu":  {"cpu: 16", "cpu: many", `line 4: lendable.cpu: got "many", want a quantity`},
		"negative": {"cpu: 16", "cpu: -1", "lendable.cpu: must not be negative, is -1"},
		"node negative": {"maxNodes: 4", "largestNodes: [{cpu: 1}, {cpu: -1}]",
			"largestNodes[1].cpu: must not be negative, is -1"},
		"gpu without domain": {"nvidia.com/gpu: 0", "gpu: 1", "lendable.gpu: not a resource of Kubernetes"},
		"max nodes":          {"maxNodes: 4", "maxNodes: -1", "maxNodes: is -1: give at least 0"},
		"max nodes fraction": {"maxNodes: 4", "maxNodes: 1.5", "maxNodes: got 1.5, want a whole number"},
		"label key":          {"country: it", "coun try: it", `labels["coun try"]: the key:`},
		"label value":        {"country: it", "country: i t", `labels.country: the value "i t":`},
		"label number":       {"country: it", "country: 39", "labels.country: got 39, want text: put it in quotes"},
		"price":              {"price: 0.12", "price: -1", "price: is -1: give at least 0"},
		"price nan":          {"price: 0.12", "price: .nan", "NaN"},
		"prices negative":    {"prices: {cpu: 0.03", "prices: {cpu: -1", "prices.cpu: is -1: give 0 to 1000000"},
		"prices too high":    {"prices: {cpu: 0.03", "prices: {cpu: 1e300", "prices.cpu: is 1e+300: give 0 to 1000000"},
		"prices infinite":    {"prices: {cpu: 0.03", "prices: {cpu: .inf", "Inf"},
		"prices text":        {"prices: {cpu: 0.03", "prices: {cpu: cheap", `prices.cpu: got "cheap", want a number`},
		"prices null":        {"prices: {cpu: 0.03", "prices: {cpu: null", "prices.cpu: "},
		"prices resource":    {"nvidia.com/gpu: 1.2", "gpu: 1.2", "prices.gpu: not a resource of Kubernetes"},
		"prices a number": {"prices: {cpu: 0.03, memory: 0.004, nvidia.com/gpu: 1.2}", "prices: 3",
			"prices: got 3, want a mapping"},
		"currency": {"currency: EUR", "currency: euro",
			`currency: got "euro", want a currency by its ISO 4217 code, such as EUR`},
		"class":   {"class: gold", "class: a/b", `class: "a/b" is not a DNS-1123 label`},
		"linger":  {"lingerSeconds: 0", "lingerSeconds: -5", "lingerSeconds: is -5: give at least 0"},
		"unpeer":  {"unpeer: never", "unpeer: always", `unpeer: got "always", want one of linger, never`},
		"expires": {"2027-01-01T00:00:00Z", "tomorrow", `expires: got "tomorrow", want a time such as`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, goodOffer, c.old, "the case must change something")
			_, err := discovery.ParseOffer([]byte(strings.Replace(goodOffer, c.old, c.new, 1)))
			require.ErrorContains(t, err, c.want)
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "one fault, one line: %v", err)
		})
	}
}

func TestPricesAreValidated(t *testing.T) {
	spec, err := discovery.ParseOffer([]byte(goodOffer))
	require.NoError(t, err)
	spec.Prices["cpu"] = math.NaN()
	require.ErrorContains(t, spec.Check(), "prices.cpu: is NaN: give 0 to 1000000")
	spec.Prices["cpu"] = math.Inf(1)
	require.ErrorContains(t, spec.Check(), "prices.cpu: is +Inf: give 0 to 1000000")
}

func TestParseListsAllFaultsOfAllOffers(t *testing.T) {
	_, err := discovery.Parse([]byte(`
offers:
- name: a
  credentials: {kubeconfigFile: a}
  lendable: {cpu: 1, memory: 1Gi, pods: 10}
- name: a
  credentials: {kubeconfigFile: b, secret: c}
  lendable: {cpu: x, memory: 1Gi, pods: 10}
- name: c
  prize: 3
  credentials: {}
  lendable: {cpu: 1, memory: 1Gi}
offer: []
`))
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	for i, path := range []string{
		`line 6: offers[1].name: "a" is also the name of offers[0]`,
		"line 7: offers[1].credentials.secret: unknown field",
		"line 8: offers[1].lendable.cpu: got",
		"line 10: offers[2].prize: unknown field",
		"line 11: offers[2].credentials: give exactly one",
		"line 12: offers[2].lendable.pods: is missing",
		"line 13: offer: unknown field: remove it, or use one of offers",
	} {
		require.Contains(t, lines[i], path)
	}
	require.Len(t, lines, 7)
}

func TestParseAcceptsNoOffers(t *testing.T) {
	doc, err := discovery.Parse([]byte("offers: []\n"))
	require.NoError(t, err)
	require.Empty(t, doc.Offers)
}

func TestEpochDependsOnTheContentOnly(t *testing.T) {
	parse := func(doc string) fleet.Offer {
		spec, err := discovery.ParseOffer([]byte(doc))
		require.NoError(t, err)
		return spec.Offer()
	}
	same := strings.Replace(strings.Replace(goodOffer, "cpu: 16", "cpu: 16000m", 1),
		"2027-01-01T00:00:00Z", "2027-01-01T01:00:00+01:00", 1)
	require.Equal(t, discovery.Epoch(parse(goodOffer)), discovery.Epoch(parse(same)))
	for _, change := range [][2]string{{"cpu: 16", "cpu: 17"}, {"price: 0.12", "price: 0.13"}, {"cpu: 0.03", "cpu: 0.04"},
		{"country: it", "country: fr"}, {"name: milan}}", "name: rome}}"}} {
		changed := strings.Replace(goodOffer, change[0], change[1], 1)
		require.NotEqual(t, discovery.Epoch(parse(goodOffer)), discovery.Epoch(parse(changed)), change)
	}
	o := parse(goodOffer)
	o.Epoch = discovery.Epoch(o)
	require.Equal(t, o.Epoch, discovery.Epoch(o), "an epoch is not part of itself")
	require.Len(t, o.Epoch, 12)
}
