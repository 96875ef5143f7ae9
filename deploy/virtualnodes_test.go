package deploy_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var virtualNodes = liqoKind("offloading", "virtualnodes")

// virtualNode is a VirtualNode. A test may change its parts separately.
type virtualNode struct {
	metadata, spec, deployment, pod, container map[string]any
}

// completed returns a VirtualNode in the form that it has after Liqo's webhook (Liqo pkg/vkMachinery/forge).
func completed(name, image string) virtualNode {
	field := func(path string) map[string]any { return map[string]any{"fieldRef": map[string]any{"fieldPath": path}} }
	labels := map[string]any{"virtualkubelet.liqo.io/virtual-node": name}
	v := virtualNode{
		metadata: map[string]any{"name": name, "labels": map[string]any{remoteID: "x"}},
		container: map[string]any{
			"name": "virtual-kubelet", "image": image, "imagePullPolicy": "IfNotPresent", "resources": map[string]any{},
			"command": []any{"/usr/bin/virtual-kubelet"},
			"args": []any{"--foreign-cluster-id=x", "--nodename=" + name, "--node-ip=$(POD_IP)",
				"--tenant-namespace=liqo-tenant-x", "--liqo-namespace=liqo", "--disable-ip-reflection=true",
				"--foreign-kubeconfig-secret-name=kubeconfig-resourceslice-" + name, "--create-node=true"},
			"env": []any{map[string]any{"name": "POD_IP", "valueFrom": field("status.podIP")},
				map[string]any{"name": "POD_NAME", "valueFrom": field("metadata.name")},
				map[string]any{"name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace")},
				map[string]any{"name": "VIRTUALNODE_NAME", "value": name}},
		},
	}
	v.pod = map[string]any{"containers": []any{v.container}, "serviceAccountName": name,
		"tolerations": []any{map[string]any{"operator": "Exists"}}, "imagePullSecrets": []any{map[string]any{"name": "a"}}}
	v.deployment = map[string]any{"name": "vk-" + name, "namespace": "liqo-tenant-x", "labels": labels}
	v.spec = map[string]any{"clusterID": "x",
		"kubeconfigSecretRef": map[string]any{"name": "kubeconfig-resourceslice-" + name},
		"template": map[string]any{"metadata": v.deployment, "spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels}, "replicas": int64(1),
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": v.pod}}}}
	return v
}

func (v virtualNode) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "offloading.liqo.io/v1beta1",
		"kind": "VirtualNode", "metadata": v.metadata, "spec": v.spec}}
}

// optionsNamed returns a reference to a VkOptionsTemplate.
func optionsNamed(namespace, name string) map[string]any {
	return map[string]any{"namespace": namespace, "name": name}
}

// virtualNodeChanges are changes of a VirtualNode. Each change makes the virtual kubelet different from the virtual
// kubelet that Liqo's webhook would create.
var virtualNodeChanges = []struct {
	what, denied string
	change       func(v virtualNode)
}{
	{"another image", "only with Liqo's own virtual kubelet", func(v virtualNode) { v.container["image"] = "mine" }},
	{"another command", "of a virtual kubelet has", func(v virtualNode) { v.container["command"] = []any{"/bin/sh"} }},
	{"a container more", "has one container", func(v virtualNode) {
		v.pod["containers"] = []any{v.container, map[string]any{"name": "c", "image": v.container["image"]}}
	}},
	{"an init container", "has one container", func(v virtualNode) {
		v.pod["initContainers"] = []any{map[string]any{"name": "i", "image": "mine"}}
	}},
	{"the node's processes", "has one container", func(v virtualNode) { v.pod["hostPID"] = true }},
	{"the node's files", "has one container", func(v virtualNode) {
		v.pod["volumes"] = []any{map[string]any{"name": "h", "hostPath": map[string]any{"path": "/"}}}
	}},
	{"another account", "has one container", func(v virtualNode) { v.pod["serviceAccountName"] = "default" }},
	{"privileges", "of a virtual kubelet has", func(v virtualNode) {
		v.container["securityContext"] = map[string]any{"privileged": true}
	}},
	{"another namespace", "the Deployment vk-<name>", func(v virtualNode) { v.deployment["namespace"] = "kube-system" }},
	{"the name of a gateway", "the Deployment vk-<name>", func(v virtualNode) { v.deployment["name"] = "gw-x" }},
	{"a proxy", "the environment of a virtual kubelet", func(v virtualNode) {
		v.container["env"] = []any{map[string]any{"name": "HTTPS_PROXY", "value": "https://mine"}}
	}},
	{"the key of a Secret", "the environment of a virtual kubelet", func(v virtualNode) {
		v.container["env"] = []any{map[string]any{"name": "POD_NAME", "valueFrom": map[string]any{
			"secretKeyRef": map[string]any{"name": "a", "key": "b"}}}}
	}},
	{"another kubeconfig by argument", "the arguments of a virtual kubelet", func(v virtualNode) {
		v.container["args"] = []any{"--foreign-kubeconfig-secret-name=liqo-signed-nonce"}
	}},
	{"another namespace by argument", "the arguments of a virtual kubelet", func(v virtualNode) {
		v.container["args"] = []any{"--tenant-namespace=liqo-tenant-y"}
	}},
	{"another namespace by two arguments", "the arguments of a virtual kubelet", func(v virtualNode) {
		v.container["args"] = []any{"--tenant-namespace", "liqo-tenant-y"}
	}},
	{"another Node by argument", "the arguments of a virtual kubelet", func(v virtualNode) {
		v.container["args"] = []any{"--nodename=real"}
	}},
	{"another kubeconfig", "the kubeconfig of their ResourceSlice", func(v virtualNode) {
		v.spec["kubeconfigSecretRef"] = map[string]any{"name": "liqo-signed-nonce"}
	}},
	{"options in another tenant's namespace", "in the namespace of Liqo", func(v virtualNode) {
		v.spec["vkOptionsTemplateRef"] = optionsNamed("liqo-tenant-theirs", "liqo-autoscaler-no-network")
	}},
	{"options under another name", "in the namespace of Liqo", func(v virtualNode) {
		v.spec["vkOptionsTemplateRef"] = optionsNamed("liqo-tenant-x", "theirs")
	}},
	{"no check by Liqo", "webhook-skip", func(v virtualNode) {
		v.metadata["labels"] = map[string]any{webhookSkip: "true"}
	}},
	{"a finalizer", "neither owners nor finalizers", func(v virtualNode) {
		v.metadata["finalizers"] = []any{"mine.example/a"}
	}},
	{"an owner that is not there", "neither owners nor finalizers", func(v virtualNode) {
		v.metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "none",
			"uid": "00000000-0000-0000-0000-000000000000"}}
	}},
}

// virtualNodesDeny checks that the worker's new and changed VirtualNodes run only Liqo's virtual kubelet. If another
// client has written the template of a VirtualNode, the worker may still change the other fields of this VirtualNode.
func virtualNodesDeny(t *testing.T, c *cluster, e escalation) {
	const tenancy = "liqo-tenant-x"
	later := completed("later", "virtual-kubelet:0") // from another version of Liqo
	later.pod["priorityClassName"] = "later"
	for _, v := range []virtualNode{completed("before", "virtual-kubelet:0"), later} {
		made, err := json.Marshal(v.object())
		require.NoError(t, err)
		c.kubectl(t, made, "apply", "-n", tenancy, "-f", "-")
	}
	create := func(v virtualNode) func(context.Context) error {
		return e.createLiqo(virtualNodes, tenancy, v.object())
	}
	patch := func(name string, change any) func(context.Context) error {
		text, err := json.Marshal(change)
		require.NoError(t, err)
		return e.patch(virtualNodes, tenancy, name, string(text))
	}
	var attempts []attempt
	for _, with := range virtualNodeChanges {
		made, changed := completed("x", "virtual-kubelet:1"), completed("before", "virtual-kubelet:0")
		with.change(made)
		with.change(changed)
		attempts = append(attempts, attempt{"create with " + with.what, with.denied, create(made)},
			attempt{"change to " + with.what, with.denied, patch("before", changed.object())})
	}
	owned := completed("x", "virtual-kubelet:1")
	owned.metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "authentication.liqo.io/v1beta1",
		"kind": "ResourceSlice", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}}
	elsewhere := completed("x", "virtual-kubelet:1")
	elsewhere.deployment["namespace"] = "partners"
	checked := completed("before", "virtual-kubelet:0")
	checked.container["args"] = append(checked.container["args"].([]any), "--node-check-network=true")
	named := func(namespace, name string) virtualNode {
		v := completed("x", "virtual-kubelet:1")
		v.spec["vkOptionsTemplateRef"] = optionsNamed(namespace, name)
		return v
	}
	note := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}
	c.judge(t, append(attempts,
		attempt{"create", "", create(owned)},
		attempt{"create without Liqo's webhook", "", create(virtualNode{map[string]any{"name": "x"},
			map[string]any{"clusterID": "x"}, nil, nil, nil})},
		attempt{"create in another namespace", "only in namespaces liqo-tenant-*", e.createLiqo(virtualNodes, "partners",
			elsewhere.object())},
		attempt{"create with options that an offer names", "", create(named(e.liqo, "gpu"))},
		attempt{"create with its own options", "", create(named(tenancy, "liqo-autoscaler-no-network"))},
		attempt{"change of Liqo's webhook", "", patch("before", checked.object())},
		attempt{"annotation", "", patch("before", note)},
		attempt{"label of the Node", "", patch("before", map[string]any{"spec": map[string]any{
			"labels": map[string]any{"a": "b"}}})},
		attempt{"annotation where Liqo's webhook makes more", "", patch("later", note)}))
}
