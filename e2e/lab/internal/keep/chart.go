package keep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const liqoNamespace = "liqo"

// chart holds the objects of Liqo's chart by kind. The chart is rendered for one cluster.
type chart map[string][]*unstructured.Unstructured

func (c *cluster) render(ctx context.Context) (chart, error) {
	off := map[string]any{"enabled": false}
	values, err := json.Marshal(map[string]any{ // JSON is YAML too
		"tag": c.LiqoVersion, "storage": off, "telemetry": off, "metrics": off,
		"networking":  c.networkingValues(),
		"proxy":       map[string]any{"enabled": !c.NoNetworking},
		"ipam":        map[string]any{"podCIDR": c.podCIDR(), "serviceCIDR": c.serviceCIDR()},
		"metricAgent": map[string]any{"enable": false},
		"offloading":  map[string]any{"disableNetworkCheck": c.NoNetworking},
		"discovery":   map[string]any{"config": map[string]any{"clusterID": c.name}},
		"apiServer":   map[string]any{"address": c.url},
		"virtualKubelet": map[string]any{"extra": map[string]any{
			"args": []string{"--enable-apiserver-support=false", "--certificate-type=self-signed"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("render Liqo's chart for %s: %w", c.name, err)
	}
	path := filepath.Join(c.Root, c.name+"-values.yaml")
	if err := os.WriteFile(path, values, 0o600); err != nil {
		return nil, fmt.Errorf("render Liqo's chart for %s: %w", c.name, err)
	}
	helm := exec.CommandContext(ctx, c.bin("helm"), "template", "liqo", filepath.Join(c.Bin, "chart"), "-n", liqoNamespace,
		"--include-crds", "-f", path)
	var stderr bytes.Buffer
	helm.Stderr = &stderr
	out, err := helm.Output()
	if err != nil {
		return nil, fmt.Errorf("render Liqo's chart for %s: %w: %s", c.name, err, stderr.String())
	}
	return parse(out)
}

func parse(manifests []byte) (chart, error) {
	out := chart{}
	docs := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := docs.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("parse Liqo's rendered chart: %w", err)
		case len(o.Object) > 0:
			out[o.GetKind()] = append(out[o.GetKind()], o)
		}
	}
}

// args returns the arguments of the container in a Deployment of the chart. It omits the arguments that begin with a
// prefix in drop.
func (ch chart) args(deployment, cluster string, drop ...string) ([]string, error) {
	for _, d := range ch["Deployment"] {
		if d.GetName() != deployment {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		if len(containers) == 0 {
			break
		}
		container, _ := containers[0].(map[string]any)
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return nil, fmt.Errorf("read arguments of %s from Liqo's chart: %w", deployment, err)
		}
		return expand(args, cluster, drop), nil
	}
	return nil, fmt.Errorf("read arguments of %s from Liqo's chart: no such Deployment with a container", deployment)
}

func expand(args []string, cluster string, drop []string) []string {
	var out []string
	for _, a := range args {
		dropped := false
		for _, d := range drop {
			dropped = dropped || a == d || strings.HasPrefix(a, d+"=")
		}
		if !dropped {
			out = append(out, strings.NewReplacer("$(CLUSTER_ID)", cluster, "$(POD_NAMESPACE)", liqoNamespace).Replace(a))
		}
	}
	return out
}
