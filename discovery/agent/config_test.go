package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const document = `
provider: milan-1
reserve: {cpu: "1"}
offers:
- consumer: munich
  name: milan
  credentials: {secretRef: {namespace: lend, name: milan}}
  labels: {country: it}
  price: 0.08
  cap: {cpu: "10", nvidia.com/gpu: "1"}
`

func TestAgentConfigIsParsed(t *testing.T) {
	c, err := Parse([]byte(document))
	require.NoError(t, err)
	require.Equal(t, time.Minute, c.TTL())
	require.Equal(t, "default", c.Offers[0].Hub)

	posted := c.Offers[0].Post(c.Provider, corev1.ResourceList{
		"cpu": resource.MustParse("10"), "memory": resource.MustParse("8Gi"), gpu: resource.MustParse("0"),
		"hugepages-2Mi": resource.MustParse("0"), "attachable-volumes": resource.MustParse("3"),
		"fpga.example.com/x": resource.MustParse("2"),
	})
	require.NoError(t, posted.Check())
	require.Equal(t, "milan-1", posted.Provider)
	require.Equal(t, "cpu=10, fpga.example.com/x=2, memory=8Gi, pods=0", renderAmounts(posted.Lendable))
	require.InDelta(t, 0.08, posted.Price, 0)
}

func TestParseReportsAllErrors(t *testing.T) {
	_, err := Parse([]byte(`
provider: Milan
ttlSeconds: 1
shares: fair
reserve: {cpu: "-1"}
offers:
- consumer: munich
  name: milan
  lendable: {cpu: "1"}
  credentials: {kubeconfigFile: x}
  labels: {"a b": c}
- consumer: ""
  name: milan
  provider: x
  expires: 2030-01-01T00:00:00Z
  class: default
  weight: 1001
  cap: {cpu: "-2"}
  credentials: {secretRef: {namespace: lend, name: milan}}
typo: 1
`))
	for _, says := range []string{`provider: "Milan" is not a Liqo cluster id`, "ttlSeconds: is 1: give 10 to 86400",
		"reserve.cpu: must not be negative", "offers[0].lendable: is measured", "offers[0].credentials.kubeconfigFile",
		`offers[0].labels["a b"]`, "offers[1].consumer", `offers[1].name: "milan" is also the name of offers[0]`,
		"offers[1].provider: must not be set here", "offers[1].expires", `shares: "fair" is not known`,
		"offers[1].class: must not be set", "offers[1].weight: is 1001", "offers[1].weight: needs shares: weights",
		"offers[1].cap.cpu: must not be negative", "typo"} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "offers[1].labels")
	for _, empty := range []string{"provider: milan", "provider: munich\noffers: [{consumer: munich, name: x}]"} {
		_, err := Parse([]byte(empty))
		require.Error(t, err)
	}
}
