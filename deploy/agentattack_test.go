package deploy_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/memlimit"
)

// TestAttackedAgent lets one consumer write the worst possible slices. The consumer also writes the status of these
// slices, which no policy prevents here. The agent has only the memory that the chart gives it. During the attack it
// still answers the slices of another consumer.
func TestAttackedAgent(t *testing.T) {
	if os.Getenv("ATTACK") == "" {
		t.Skip("part of make e2e SUITE=attack")
	}
	c := startCluster(t)
	d := c.installAgent(t)
	limit := d.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
	require.Positive(t, limit.Value())
	c.limit = memlimit.New(t, limit.Value())
	c.addNode(t, corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1000Gi"),
		"pods": resource.MustParse("1000")})
	objects, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	for _, consumer := range []string{"munich", "turin"} {
		c.kubectl(t, nil, "create", "namespace", "liqo-tenant-"+consumer)
		_, err := objects.Resource(liqoResource("tenants")).Namespace("liqo-tenant-"+consumer).Create(t.Context(),
			liqoObject("Tenant", "liqo-tenant-"+consumer, consumer, map[string]any{"clusterID": consumer}),
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
	stop, _ := c.runAgent(t, d, storetest.New(t))
	asked, alone := 0, 0.0
	honest := func(attack string) {
		t.Helper()
		began := time.Now()
		for range 5 {
			name := fmt.Sprintf("honest-%d", asked)
			asked++
			require.NoError(t, c.ask(t, objects, "turin", name))
			testkit.Until(t, time.Minute, attack+": turin's slice has an answer", func() error {
				slice, err := objects.Resource(liqoResource("resourceslices")).Namespace("liqo-tenant-turin").Get(t.Context(),
					name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				conditions, _, _ := unstructured.NestedSlice(slice.Object, "status", "conditions")
				if len(conditions) < 2 || conditions[1].(map[string]any)["status"] != "Accepted" {
					return fmt.Errorf("conditions %v", conditions)
				}
				return nil
			})
		}
		peak := c.limit.Peak(t)
		mean := time.Since(began).Seconds() / 5
		if alone == 0 {
			alone = mean
		}
		fmt.Printf("BENCH attack-agent-%s-answer %.1f ms %.1f without-attack\n", attack, 1000*mean, mean/alone)
		fmt.Printf("BENCH attack-agent-%s-peak %.0f MiB %.2f of-the-limit\n", attack, float64(peak)/(1<<20),
			float64(peak)/float64(limit.Value()))
		require.Zero(t, c.limit.Killed(t), attack)
	}
	honest("none")

	c.attack(t, objects, "large", 60, map[string]any{"csr": base64.StdEncoding.EncodeToString(
		[]byte(strings.Repeat("A", 1_000_000)))}, nil)
	honest("large-slices")

	names := map[string]any{}
	for n := range 5000 {
		names[fmt.Sprintf("example.com/resource-%d", n)] = "1"
	}
	c.attack(t, objects, "names", 20, map[string]any{"resources": names}, map[string]any{"resources": names})
	honest("resource-names")

	for n, amount := range []string{"1e1.5", "1e30000000", "1e-30000000", strings.Repeat("9", 100_000)} {
		c.attack(t, objects, fmt.Sprintf("amount-%d", n), 1, nil, map[string]any{"resources": map[string]any{"cpu": amount}})
		honest(fmt.Sprintf("amount-%d", n))
	}
	c.attack(t, objects, "many", 500, nil, map[string]any{"resources": map[string]any{"cpu": "1000"}})
	honest("many-slices")

	for n := range 60 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", n), Namespace: "apps"},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "x",
				Args: []string{strings.Repeat("A", 1_400_000)}}}}}
		_, err := c.kube.CoreV1().Pods("apps").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	honest("large-pods")
	stop()
	c.runAgent(t, d, storetest.New(t))
	honest("restart")
}

// attack creates many slices of the consumer munich with these fields. It also writes their status, which only Liqo
// should write.
func (c *cluster) attack(t *testing.T, objects dynamic.Interface, name string, many int, spec, status map[string]any) {
	t.Helper()
	all := objects.Resource(liqoResource("resourceslices")).Namespace("liqo-tenant-munich")
	for n := range many {
		fields := map[string]any{"class": agent.Class, "consumerClusterID": "munich",
			"resources": map[string]any{"cpu": "1"}}
		for field, value := range spec {
			fields[field] = value
		}
		slice := liqoObject("ResourceSlice", "liqo-tenant-munich", fmt.Sprintf("%s-%d", name, n), fields)
		slice.SetLabels(map[string]string{"liqo.io/originID": "munich"})
		made, err := all.Create(t.Context(), slice, metav1.CreateOptions{})
		require.NoError(t, err, name)
		made.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Authentication", "status": "Accepted"},
			map[string]any{"type": "Resources", "status": "Accepted"}}}
		for field, value := range status {
			made.Object["status"].(map[string]any)[field] = value
		}
		_, err = all.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err, "%s: status", name)
	}
}
