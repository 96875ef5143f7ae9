package deploy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// holder has clients with the token of an account. Every attempt is a dry run: admission judges it in the same way as
// a real request.
type holder struct {
	kube kubernetes.Interface
	liqo dynamic.Interface
}

var (
	dryCreate = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	dryPatch  = metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	dryDelete = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
)

func (c *cluster) holder(t *testing.T, namespace, account string) holder {
	t.Helper()
	made, err := c.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c.withToken(t, made.Status.Token)
}

// identity returns clients with a certificate for this user name and these groups. The user has an administrator's
// permissions, so only a policy can refuse its requests.
func (c *cluster) identity(t *testing.T, name string, groups ...string) (h holder) {
	t.Helper()
	access := rest.CopyConfig(c.config)
	access.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:masters")}
	var err error
	h.kube, err = kubernetes.NewForConfig(access)
	require.NoError(t, err)
	h.liqo, err = dynamic.NewForConfig(access)
	require.NoError(t, err)
	return h
}

func (c *cluster) withToken(t *testing.T, token string) (h holder) {
	t.Helper()
	access := rest.AnonymousClientConfig(c.config)
	access.BearerToken = token
	access.QPS, access.Burst = 200, 400
	var err error
	h.kube, err = kubernetes.NewForConfig(access)
	require.NoError(t, err)
	h.liqo, err = dynamic.NewForConfig(access)
	require.NoError(t, err)
	return h
}

func liqoKind(group, name string) apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: group + ".liqo.io", Version: "v1beta1", Resource: name}
}

// createSecret creates a Secret. If a Secret with this name already exists, a policy can still refuse the request,
// because admission runs first.
func (h holder) createSecret(ctx context.Context, namespace, name string, changes ...func(*corev1.Secret)) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{},
		Labels: map[string]string{}}}
	for _, change := range changes {
		change(secret)
	}
	_, err := h.kube.CoreV1().Secrets(namespace).Create(ctx, secret, dryCreate)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (h holder) patchSecret(namespace, name, patch string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := h.kube.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), dryPatch)
		return err
	}
}

// patch returns an attempt to patch an object of Liqo, or one of its subresources.
func (h holder) patch(kind apischema.GroupVersionResource, namespace, name, patch string,
	of ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := h.liqo.Resource(kind).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), dryPatch,
			of...)
		return err
	}
}

func (h holder) createLiqo(kind apischema.GroupVersionResource, namespace string,
	object *unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := h.liqo.Resource(kind).Namespace(namespace).Create(ctx, object, dryCreate)
		return err
	}
}

// createServed creates an object as the administrator. It waits until the object's kind is served, which takes a
// moment for a new CRD.
func (c *cluster) createServed(t *testing.T, kind apischema.GroupVersionResource, object *unstructured.Unstructured) {
	t.Helper()
	admin, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	testkit.Until(t, 2*time.Minute, object.GetKind()+" is served", func() error {
		_, err := admin.Resource(kind).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
}

func labelled(key string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Labels[key] = "ControlPlane" }
}

func tokenOf(account string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Type = corev1.SecretTypeServiceAccountToken
		s.Annotations[corev1.ServiceAccountNameKey] = account
	}
}

func annotated(s *corev1.Secret) { s.Annotations[corev1.ServiceAccountNameKey] = "default" }

// attempt is one request of an account.
type attempt struct {
	what   string
	denied string // a part of the expected refusal, by a policy or for a missing right; "" if it is allowed
	try    func(ctx context.Context) error
}

// judge first repeats the first attempt until it is denied, because a new policy takes effect after a moment. Then it
// makes all attempts and checks their results. Unless the cluster belongs to a lab, it then calls removeEach.
func (c *cluster) judge(t *testing.T, attempts []attempt) {
	t.Helper()
	require.NotEmpty(t, attempts[0].denied)
	limit := 2 * time.Minute
	if c.removed == nil {
		limit = 20 * time.Second
	}
	testkit.Until(t, time.Minute, "the policy is in force", func() error {
		if err := attempts[0].try(t.Context()); !c.meets(attempts[0], err) {
			return fmt.Errorf("the answer: %w", err)
		}
		return nil
	})
	for _, a := range attempts {
		t.Run(a.what, func(t *testing.T) {
			testkit.Until(t, limit, "want "+a.denied, func() error { // each policy takes effect at another time
				err := a.try(t.Context())
				if !c.meets(a, err) {
					return fmt.Errorf("the answer: %w", err)
				}
				return nil
			})
		})
	}
	if c.removed != nil {
		c.removeEach(t, attempts)
	}
}

// meets reports whether the attempt has the expected result.
func (c *cluster) meets(a attempt, err error) bool {
	if err == nil {
		return a.denied == "" || c.undoes(a.what)
	}
	byLiqo := c.removed == nil && strings.Contains(err.Error(), ".liqo.io\" denied the request") // by a webhook
	return a.denied != "" && (byLiqo || refused(err, a.denied))
}

func refused(err error, says string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), says)
}

func (c *cluster) applyCRDs(t *testing.T, names ...string) {
	t.Helper()
	if c.removed == nil {
		return // the lab's Liqo has installed them
	}
	for _, name := range names {
		c.kubectl(t, nil, "apply", "--server-side", "-f", filepath.Join(c.bin, "chart", "charts", "liqo-crds", "crds",
			name+".yaml"))
	}
	c.crdsServed(t)
}

// renews checks that `provider-access renew` replaces the token in a kubeconfig of the account. The new token belongs
// to the same account.
func renews(t *testing.T, c *cluster, kubeconfig []byte) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, kubeconfig, 0o600))
	out, err := c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, "provider-access", "renew", "--file", file, "--duration", "20m")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "has a token that is valid until ")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEqual(t, string(kubeconfig), string(after))
	who := c.kubectl(t, nil, "--kubeconfig", file, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.Equal(t, "system:serviceaccount:liqo-autoscaler:consumer-rome", who)

	// The same works for the Secret of an offer. The Secret is in the same cluster, because the test has only one.
	c.kubectl(t, nil, "-n", "providers", "create", "secret", "generic", "rome", "--from-file=kubeconfig="+file)
	out, err = c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, "provider-access", "renew", "--secret", "providers/rome")
	require.NoError(t, err, "%s", out)
	secret, err := c.kube.CoreV1().Secrets("providers").Get(t.Context(), "rome", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, string(after), string(secret.Data["kubeconfig"]))
	require.Contains(t, string(secret.Data["kubeconfig"]), "consumer-rome")
}
