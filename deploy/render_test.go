// Package deploy_test compares the files of this folder with the code that they deploy: every rendered object with
// the types of Kubernetes, every flag with the binary, and every permission with the places where the code uses a
// client.
//
// A test that needs a tool is skipped if the tool is missing. `make deploy-check` installs every tool, so that it
// skips no test.
package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	chart     = "helm/liqo-autoscaler"
	release   = "liqo-autoscaler"
	namespace = "liqo-autoscaler"
	kube      = "v1.33.1" // helm from a build of its source would assume 1.20
)

// valueSets are the files ci/<set>-values.yaml of the chart.
var valueSets = []string{"plaintext", "certmanager", "existing"}

func valuesFile(set string) string { return filepath.Join(chart, "ci", set+"-values.yaml") }

func TestEveryValuesFileIsTested(t *testing.T) {
	files, err := filepath.Glob(valuesFile("*"))
	require.NoError(t, err)
	require.Len(t, files, len(valueSets))
}

// tool returns the path that the given environment variable contains. If the variable is not set, tool skips the
// test.
func tool(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip(variable + " is not set: run make deploy-check")
	}
	return path
}

// helm runs helm and returns its output. An error contains the text of stderr.
func helm(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "HELM"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return problems.Bytes(), err
	}
	return out.Bytes(), nil
}

func template(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	return helm(t, append([]string{"template", release, chart, "--namespace", namespace, "--kube-version", kube},
		args...)...)
}

// render renders the chart with a set of values. It decodes every object strictly into the object's type.
func render(t *testing.T, set string, args ...string) []object {
	t.Helper()
	out, err := template(t, append([]string{"--values", valuesFile(set)}, args...)...)
	require.NoError(t, err, "%s", out)
	return decode(t, out)
}

// object is a decoded object.
type object struct {
	meta  metav1.TypeMeta
	typed metav1.Object
}

// kinds returns the types of the objects in the charts. The types of operators are in operators_test.go.
func kinds() map[string]metav1.Object {
	return map[string]metav1.Object{
		"v1/ConfigMap": &corev1.ConfigMap{}, "v1/Secret": &corev1.Secret{}, "v1/Service": &corev1.Service{},
		"v1/ServiceAccount": &corev1.ServiceAccount{}, "v1/PersistentVolumeClaim": &corev1.PersistentVolumeClaim{},
		"v1/Namespace": &corev1.Namespace{}, "v1/ResourceQuota": &corev1.ResourceQuota{}, "v1/Pod": &corev1.Pod{},
		"apps/v1/Deployment":                                               &appsv1.Deployment{},
		"apps/v1/StatefulSet":                                              &appsv1.StatefulSet{},
		"batch/v1/Job":                                                     &batchv1.Job{},
		"batch/v1/CronJob":                                                 &batchv1.CronJob{},
		"policy/v1/PodDisruptionBudget":                                    &policyv1.PodDisruptionBudget{},
		"networking.k8s.io/v1/NetworkPolicy":                               &networkingv1.NetworkPolicy{},
		"rbac.authorization.k8s.io/v1/ClusterRole":                         &rbacv1.ClusterRole{},
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding":                  &rbacv1.ClusterRoleBinding{},
		"rbac.authorization.k8s.io/v1/Role":                                &rbacv1.Role{},
		"rbac.authorization.k8s.io/v1/RoleBinding":                         &rbacv1.RoleBinding{},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy":        &admissionv1.ValidatingAdmissionPolicy{},
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": &admissionv1.ValidatingAdmissionPolicyBinding{},
		"cert-manager.io/v1/Certificate":                                   &certificate{},
		"cert-manager.io/v1/Issuer":                                        &issuer{},
		"monitoring.coreos.com/v1/ServiceMonitor":                          &serviceMonitor{},
		"monitoring.coreos.com/v1/PrometheusRule":                          &prometheusRule{},
	}
}

// decode decodes a stream of YAML documents strictly: an unknown or duplicate key fails the test.
func decode(t *testing.T, stream []byte) (objects []object) {
	t.Helper()
	for _, document := range bytes.Split(append([]byte("\n"), stream...), []byte("\n---")) {
		var o object
		require.NoError(t, yaml.Unmarshal(document, &o.meta))
		if o.meta.Kind == "" {
			continue
		}
		typed := kinds()[o.meta.APIVersion+"/"+o.meta.Kind]
		require.NotNil(t, typed, "%s %s: add its type to kinds", o.meta.APIVersion, o.meta.Kind)
		require.NoError(t, yaml.UnmarshalStrict(document, typed), "%s", document)
		require.NotEmpty(t, typed.GetName())
		clusterWide := slices.Contains([]string{"Namespace", "ClusterRole", "ClusterRoleBinding",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}, o.meta.Kind)
		require.Equal(t, clusterWide, typed.GetNamespace() == "",
			"%s %s says its namespace, for those who apply without helm", o.meta.Kind, typed.GetName())
		o.typed = typed
		objects = append(objects, o)
	}
	return objects
}

// all returns the objects of one type.
func all[T any](objects []object) (found []*T) {
	for _, o := range objects {
		if typed, ok := o.typed.(any).(*T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// one returns the only object with this type, namespace and name.
func one[T any](t *testing.T, objects []object, namespace, name string) *T {
	t.Helper()
	for _, o := range objects {
		if typed, ok := o.typed.(any).(*T); ok && o.typed.GetName() == name && o.typed.GetNamespace() == namespace {
			return typed
		}
	}
	require.Failf(t, "not rendered", "%s %s/%s", reflect.TypeFor[T](), namespace, name)
	return nil
}

// helm's linter reports no finding.
func TestHelmsLinterReportsNoFinding(t *testing.T) {
	for _, set := range valueSets {
		out, err := helm(t, "lint", chart, "--strict", "--quiet", "--kube-version", kube, "--values", valuesFile(set))
		require.NoError(t, err, "%s", out)
	}
}
