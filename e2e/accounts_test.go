package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// chartNamespace is the namespace of the consumer cluster in which the chart is installed. It has the chart's name.
const chartNamespace = "liqo-autoscaler"

// These are the charts' ServiceAccounts, and a role of the worker.
const (
	workerAccount = "liqo-autoscaler-worker"
	serverAccount = "liqo-autoscaler-grpcserver"
	agentAccount  = "liqo-autoscaler-agent"
	tenantRole    = "liqo-autoscaler-worker-tenant"
)

// makeAccounts makes the accounts that our processes use.
func (s *stack) makeAccounts(ctx context.Context) {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chartNamespace}}
	_, err := s.consumer.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.chartAccounts(ctx)
	for _, p := range s.providers {
		s.providerAccount(ctx, p)
	}
}

// chartAccounts creates the chart's ServiceAccounts with the permissions that the chart gives them for these node
// groups and offers. It also writes the kubeconfig of the worker's account. The gRPC server has no kubeconfig, no
// permissions and no token, unless it reads the market.
func (s *stack) chartAccounts(ctx context.Context) {
	s.t.Helper()
	args := []string{"--values", filepath.Join(s.dir, "groups.yaml"), "--values", filepath.Join(s.dir, "offers.yaml"),
		"--set", "temporal.address=" + s.temporal, "--set", "tls.existingSecret=unused",
		"--set", "offerSecrets.enabled=" + strconv.FormatBool(s.offerSecrets),
		"--show-only", "templates/serviceaccounts.yaml", "--show-only", "templates/worker-rbac.yaml",
		"--show-only", "templates/worker-policy.yaml", "--show-only", "templates/hub-rbac.yaml"}
	if s.offerServer != nil {
		args = append(args, "--set",
			"offerServer.enabled=true,offerServer.url=https://offers,offerServer.token.secretName=unused")
	}
	if s.market {
		args = append(args, "--show-only", "templates/market-rbac.yaml")
	}
	s.install(ctx, s.consumer, "liqo-autoscaler", args...)
	s.chartAccount(ctx, s.consumer, workerAccount, lab.Consumer)
	if s.market {
		s.chartAccount(ctx, s.consumer, serverAccount, serverAccount)
	}
}

// install renders one of our charts with the given arguments for helm, and applies the result. The arguments may
// select a part of the chart.
func (s *stack) install(ctx context.Context, in *cluster, chart string, args ...string) {
	s.t.Helper()
	rendered := s.render(ctx, chart, args...)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, chart+"-rbac.yaml"), rendered, 0o600))
	s.tool(ctx, s.admin(in.name), rendered, "kubectl", "apply", "-f", "-")
}

// render renders one of our charts with the given arguments for helm. They may select a part of the chart.
func (s *stack) render(ctx context.Context, chart string, args ...string) []byte {
	s.t.Helper()
	return s.tool(ctx, nil, nil, "helm", append([]string{"template", chart, filepath.Join(sources(s.t), "deploy", "helm",
		chart), "--namespace", chartNamespace, "--kube-version", s.lab.KubernetesVersion}, args...)...)
}

// chartAccount makes the kubeconfig of one of the charts' ServiceAccounts: <name>.kubeconfig in s.accounts.
func (s *stack) chartAccount(ctx context.Context, of *cluster, account, name string) {
	s.t.Helper()
	hours := int64((2 * time.Hour).Seconds())
	granted, err := of.kube.CoreV1().ServiceAccounts(chartNamespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hours}},
		metav1.CreateOptions{})
	require.NoError(s.t, err)
	config, err := clientcmd.LoadFromFile(s.lab.Kubeconfig(of.name))
	require.NoError(s.t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: granted.Status.Token}
	}
	path := filepath.Join(s.accounts, name+".kubeconfig")
	require.NoError(s.t, clientcmd.WriteToFile(*config, path)) // 0600
	s.limited(ctx, path)
}

// grant applies, as a provider's administrator, the manifests that `provider-access` prints for this consumer. It may
// run repeatedly.
func (s *stack) grant(ctx context.Context, provider *cluster) error {
	manifest, err := s.try(ctx, nil, nil, s.binary, "provider-access", "--consumer-id", lab.Consumer)
	if err != nil {
		return err
	}
	_, err = s.try(ctx, s.admin(provider.name), manifest, filepath.Join(s.lab.Bin, "kubectl"), "apply", "-f", "-")
	return err
}

// grantAnew returns an error while our namespace on the provider exists. When the namespace is gone, it calls grant,
// because liqoctl has removed the granted objects with the namespace.
func (s *stack) grantAnew(ctx context.Context, provider *cluster) error {
	ns, err := provider.kube.CoreV1().Namespaces().Get(ctx, "liqo-tenant-"+lab.Consumer, metav1.GetOptions{})
	if err == nil {
		return fmt.Errorf("namespace %s is %s", ns.Name, ns.Status.Phase)
	}
	return s.grant(ctx, provider)
}

// granted returns the kubeconfig of the account that a provider gives us.
func (s *stack) granted(ctx context.Context, provider *cluster) ([]byte, error) {
	return s.try(ctx, s.admin(provider.name), nil, s.binary, "provider-access", "kubeconfig", "--consumer-id",
		lab.Consumer, "--server", restConfig(s.t, s.lab.Kubeconfig(provider.name)).Host)
}

// providerAccount creates the account that a provider gives us. It writes the account's kubeconfig to a file in
// s.accounts and to a Secret of the consumer, because an offer may name the file or the Secret. Both have the
// provider's name.
func (s *stack) providerAccount(ctx context.Context, provider *cluster) {
	s.t.Helper()
	require.NoError(s.t, s.grant(ctx, provider))
	var kubeconfig []byte
	newSteps(s.t).until(ctx, "account of "+provider.name, 30*time.Second, func(ctx context.Context) (err error) {
		kubeconfig, err = s.granted(ctx, provider)
		return err
	})
	path := filepath.Join(s.accounts, provider.name+".kubeconfig")
	require.NoError(s.t, os.WriteFile(path, kubeconfig, 0o600))
	s.limited(ctx, path)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: provider.name},
		Data: map[string][]byte{"kubeconfig": kubeconfig}}
	_, err := s.consumer.kube.CoreV1().Secrets(chartNamespace).Create(ctx, secret, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// asMade returns an error for each object in the tenant namespace that a provider has created for us, with three
// exceptions: the objects of provider-access, the ConfigMap that Kubernetes creates in every namespace, and a Secret
// of Liqo that always stays.
func asMade(ctx context.Context, provider *cluster) error {
	stays := []string{"Role liqo-autoscaler-consumer-" + lab.Consumer, "RoleBinding liqo-autoscaler-consumer-" +
		lab.Consumer,
		"ConfigMap kube-root-ca.crt", "Secret liqo-remote-certificate"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	var found []error
	for _, r := range []schema.GroupVersionResource{resourceSlices, tenants,
		corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("configmaps"),
		rbac.WithResource("roles"), rbac.WithResource("rolebindings")} {
		l, err := provider.liqo.Resource(r).Namespace("liqo-tenant-"+lab.Consumer).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, i := range l.Items {
			if object := i.GetKind() + " " + i.GetName(); !slices.Contains(stays, object) {
				found = append(found, fmt.Errorf("%s: %s", provider.name, object))
			}
		}
	}
	return errors.Join(found...)
}

// probe is the name of a Secret that accounts request to show that the request is refused.
const probe = "not-for-you"

// limited requires that a cluster accepts the kubeconfig, and that the kubeconfig has no administrator permissions.
func (s *stack) limited(ctx context.Context, kubeconfig string) {
	s.t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(s.t, err)
	for _, user := range config.AuthInfos {
		require.NotEmpty(s.t, user.Token)
		s.tokens = append(s.tokens, user.Token)
	}
	client, err := kubernetes.NewForConfig(restConfig(s.t, kubeconfig))
	require.NoError(s.t, err)
	_, err = client.CoreV1().Secrets("kube-system").Get(ctx, probe, metav1.GetOptions{})
	require.True(s.t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(s.t, err, "system:serviceaccount:"+chartNamespace+":")
}

// admin returns the environment of an administrator of a cluster.
func (s *stack) admin(cluster string) []string {
	return []string{"KUBECONFIG=" + s.lab.Kubeconfig(cluster)}
}

// tool runs one of the lab's tools, which must succeed, and returns its output.
func (s *stack) tool(ctx context.Context, env []string, stdin []byte, name string, args ...string) []byte {
	s.t.Helper()
	out, err := s.try(ctx, env, stdin, filepath.Join(s.lab.Bin, name), args...)
	require.NoError(s.t, err)
	return out
}

// try runs a command that finds the lab's tools.
func (s *stack) try(ctx context.Context, env []string, stdin []byte, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), "PATH="+s.lab.Bin+":"+os.Getenv("PATH")), env...)
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, problems.Bytes())
	}
	return out.Bytes(), nil
}
