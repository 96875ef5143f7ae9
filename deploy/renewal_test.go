package deploy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRenewalCoversEachKubeconfig checks the chart's CronJob. Its arguments name each kubeconfig that the worker
// uses, and the binary accepts them. The account of the CronJob may read and patch the Secrets of these kubeconfigs.
func TestRenewalCoversEachKubeconfig(t *testing.T) {
	o := render(t, "certmanager")
	pod := one[batchv1.CronJob](t, o, namespace, "liqo-autoscaler-renewal").Spec.JobTemplate.Spec.Template.Spec
	args := pod.Containers[0].Args
	require.Equal(t, []string{"--secret=providers/milan/config", "--secret=providers/turin/kubeconfig",
		"--secrets-in=" + namespace}, args[len(args)-3:])
	require.Equal(t, "liqo-autoscaler-renewal", pod.ServiceAccountName)
	named := one[rbacv1.Role](t, o, "providers", "liqo-autoscaler-renewal").Rules
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
		ResourceNames: []string{"milan", "turin"}, Verbs: []string{"get", "patch"}}}, named)
	whole := one[rbacv1.Role](t, o, namespace, "liqo-autoscaler-renewal").Rules
	require.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"get", "list", "patch"}}}, whole)
	out, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"), append(slices.Clone(args),
		"--help")...).CombinedOutput()
	require.NoError(t, err, "%s", out)

	for _, off := range []string{"renewal.enabled=false", "microvm.enabled=true,microvm.namespace=machines"} {
		for _, left := range render(t, "certmanager", "--set", off) {
			require.NotContains(t, left.typed.GetName(), "renewal", off)
		}
	}
}

// renewalDenies checks the policy for the account of the CronJob. The account can only replace a kubeconfig, and only
// in a Secret that already contains one.
func (c *cluster) renewalDenies(t *testing.T, set string) {
	account := "system:serviceaccount:" + namespace + ":" + nameOf(set) + "-renewal"
	h := c.identity(t, account, "system:serviceaccounts")
	in, name, key := namespace, "milan", "kubeconfig"
	labels := map[string]string{}
	switch set {
	case "certmanager":
		in, key = "providers", "config"
	case "existing":
		in, labels = "providers", map[string]string{"autoscaling": "true"}
	}
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string][]byte{key: []byte("a"),
			"info": []byte("a")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Data: map[string][]byte{key: []byte("a")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "labelled", Labels: map[string]string{"liqo-autoscaler.io/renew": "true"}},
			Data: map[string][]byte{key: []byte("a")}},
	} {
		_, err := c.kube.CoreV1().Secrets(in).Create(t.Context(), secret, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	defer c.kubectl(t, nil, "delete", "secret", "-n", in, name, "other", "labelled")
	data := func(fields string) string { return `{"data": {` + strings.ReplaceAll(fields, "KEY", key) + `}}` }
	const alone = "changes only the kubeconfig in a Secret"
	c.judge(t, []attempt{
		{"another key", alone, h.patchSecret(in, name, data(`"info": "Yg=="`))},
		{"a key more", alone, h.patchSecret(in, name, data(`"KEY": "Yg==", "more": "Yg=="`))},
		{"a key less", alone, h.patchSecret(in, name, data(`"info": null`))},
		{"no kubeconfig", alone, h.patchSecret(in, name, data(`"KEY": null`))},
		{"a label", "changes no metadata", h.patchSecret(in, name,
			`{"metadata": {"labels": {"liqo.io/identity-type": "ControlPlane"}}}`)},
		{"a finalizer", "changes no metadata", h.patchSecret(in, name, `{"metadata": {"finalizers": ["a/b"]}}`)},
		{"a Secret of others", "that values.offers names", h.patchSecret(in, "other", data(`"KEY": "Yg=="`))},
		{"kubeconfig", "", h.patchSecret(in, name, data(`"KEY": "Yg=="`))},
		{"kubeconfig of a labelled Secret", "", h.patchSecret(in, "labelled", data(`"KEY": "Yg=="`))},
	})
}
