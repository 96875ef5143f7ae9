package deploy_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var shadowPods = liqoKind("offloading", "shadowpods")

// shadowPod returns a ShadowPod in the form in which a virtual kubelet creates it (Liqo
// pkg/virtualKubelet/forge/pods.go). The parameters pod and container are JSON texts. shadowPod adds their fields to
// the pod, and to the pod's first container.
func shadowPod(t *testing.T, name, pod, container string) *unstructured.Unstructured {
	t.Helper()
	spec := map[string]any{"automountServiceAccountToken": false, "restartPolicy": "Always"}
	first := map[string]any{"name": "web", "image": "registry.example.com/web:1"}
	if container != "" {
		require.NoError(t, json.Unmarshal([]byte(container), &first))
	}
	spec["containers"] = []any{first}
	if pod != "" {
		require.NoError(t, json.Unmarshal([]byte(pod), &spec))
	}
	u := liqoObject("ShadowPod", "default", name, map[string]any{"pod": spec})
	u.SetAPIVersion("offloading.liqo.io/v1beta1")
	u.SetLabels(map[string]string{"offloading.liqo.io/origin": "rome"})
	return u
}

// privilegedPod returns a ShadowPod that the policies refuse.
func privilegedPod(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return shadowPod(t, "before", "", `{"securityContext": {"privileged": true}}`)
}

// consumerPods checks that the pods of a consumer comply with the Pod Security Standard "baseline", regardless of the
// identity that creates them. A pod that exists already may still be updated.
func consumerPods(t *testing.T, c *cluster) {
	kubelet := c.identity(t, "group-00000-1a2b3c4d5e6f", "rome")
	if c.removed != nil { // in a lab, the pod exists before the policies
		c.createServed(t, shadowPods, privilegedPod(t))
	}
	make := func(h holder, pod, container string, annotations ...string) func(context.Context) error {
		made := shadowPod(t, "new", pod, container)
		if len(annotations) > 0 {
			made.SetAnnotations(map[string]string{annotations[0]: annotations[1]})
		}
		return h.createLiqo(shadowPods, "default", made)
	}
	const flag = "provider-access --pod-security privileged"
	attempts := []attempt{
		{"privileged container", flag, make(kubelet, "", `{"securityContext": {"privileged": true}}`)},
		{"usual pod", "", make(kubelet, `{"volumes": [{"name": "a", "emptyDir": {}}], "securityContext": {"runAsUser": 1000,
			"seccompProfile": {"type": "RuntimeDefault"}, "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}}`,
			`{"ports": [{"containerPort": 80}], "securityContext": {"capabilities": {"drop": ["ALL"],
			"add": ["NET_BIND_SERVICE"]}, "allowPrivilegeEscalation": false}}`)},
		{"init container that is fine", "", make(kubelet, `{"initContainers": [{"name": "a", "image": "a"}]}`, "")},
		{"usual AppArmor", "", make(kubelet, "", "", "container.apparmor.security.beta.kubernetes.io/web",
			"runtime/default")},
	}
	for what, pod := range map[string]string{
		"network of the node": `{"hostNetwork": true}`, "processes of the node": `{"hostPID": true}`,
		"memory of the node": `{"hostIPC": true}`,
		"path of the node":   `{"volumes": [{"name": "a", "hostPath": {"path": "/run/containerd"}}]}`,
		"privileged init":    `{"initContainers": [{"name": "a", "image": "a", "securityContext": {"privileged": true}}]}`,
		"init with NET_ADMIN": `{"initContainers": [{"name": "a", "image": "a", "securityContext": {"capabilities":
			{"add": ["NET_ADMIN"]}}}]}`,
		"ephemeral container": `{"ephemeralContainers": [{"name": "a", "image": "a",
			"securityContext": {"privileged": true}}]}`,
		"process of Windows": `{"securityContext": {"windowsOptions": {"hostProcess": true}}}`,
		"no seccomp":         `{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}`,
		"no AppArmor":        `{"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}`,
		"SELinux type":       `{"securityContext": {"seLinuxOptions": {"type": "spc_t"}}}`,
		"SELinux user":       `{"securityContext": {"seLinuxOptions": {"user": "system_u"}}}`,
		"sysctl of the node": `{"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}`,
	} {
		attempts = append(attempts, attempt{what, flag, make(kubelet, pod, "")})
	}
	for what, container := range map[string]string{
		"port of the node": `{"ports": [{"containerPort": 1, "hostPort": 80}]}`,
		"SYS_ADMIN":        `{"securityContext": {"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}}`,
		"all":              `{"securityContext": {"capabilities": {"add": ["ALL"]}}}`,
		"whole /proc":      `{"securityContext": {"procMount": "Unmasked"}}`,
		"own seccomp":      `{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}`,
		"SELinux role":     `{"securityContext": {"seLinuxOptions": {"role": "sysadm_r"}}}`,
	} {
		attempts = append(attempts, attempt{what, flag, make(kubelet, "", container)})
	}
	for _, pod := range []string{`{"nodeName": "master-1"}`, `{"priorityClassName": "system-node-critical"}`,
		`{"priority": 2000000000}`, `{"preemptionPolicy": "PreemptLowerPriority"}`} {
		attempts = append(attempts, attempt{pod, "names neither a node nor a priority", make(kubelet, pod, "")})
	}
	attempts = append(attempts,
		attempt{"AppArmor by annotation", flag, make(kubelet, "", "", "container.apparmor.security.beta.kubernetes.io/web",
			"unconfined")},
		attempt{"label of a pod that was there before", "", kubelet.patch(shadowPods, "default", "before",
			`{"metadata": {"labels": {"a": "b"}}}`)},
		attempt{"pod that was there before", flag, kubelet.patch(shadowPods, "default", "before",
			`{"spec": {"pod": {"hostPID": true}}}`)})
	for who, is := range consumerIdentities(t, c) {
		attempts = append(attempts, attempt{who, flag, make(is, "", `{"securityContext": {"privileged": true}}`)})
	}
	turin := c.identity(t, "group-00000-1a2b3c4d5e6f", "turin")
	attempts = append(attempts, attempt{"another consumer", "", make(turin, "",
		`{"securityContext": {"privileged": true}}`)})
	c.judge(t, attempts)
}

// consumerServices checks that a consumer cannot create a Service that receives the traffic of other workloads.
func consumerServices(t *testing.T, c *cluster) {
	h := c.identity(t, "group-00000-1a2b3c4d5e6f", "rome")
	create := func(ips ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := h.kube.CoreV1().Services("default").Create(ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "web"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: ips},
			}, dryCreate)
			return err
		}
	}
	c.kubectl(t, nil, "create", "service", "loadbalancer", "there", "--tcp=80")
	status := func(ctx context.Context) error {
		_, err := h.kube.CoreV1().Services("default").Patch(ctx, "there", types.MergePatchType,
			[]byte(`{"status": {"loadBalancer": {"ingress": [{"ip": "8.8.8.8"}]}}}`), dryPatch, "status")
		return err
	}
	c.judge(t, []attempt{
		{"addresses of others", "has no externalIPs", create("8.8.8.8")},
		{"usual Service", "", create()},
		{"addresses of others in the status", "the status of a Service is the provider's", status},
	})
}
