package keep

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// installLiqo applies Liqo's objects to the cluster, starts Liqo's processes, and returns when the processes answer.
func (c *cluster) installLiqo(ctx context.Context, ch chart) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liqoNamespace}}
	if _, err := c.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s in %s: %w", liqoNamespace, c.name, err)
	}
	if err := c.apply(ctx, ch, "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"ServiceAccount", "ConfigMap", "RuntimeClass"); err != nil {
		return err
	}
	if err := c.established(ctx); err != nil {
		return err
	}
	if err := c.apply(ctx, ch, "VkOptionsTemplate"); err != nil {
		return err
	}
	if err := c.applyManagerDeployment(ctx, ch); err != nil {
		return err
	}
	if err := c.networking(ctx, ch); err != nil {
		return err
	}
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() error { return c.webhook(starting, ch) })
	group.Go(func() error { return c.manager(starting, ch) })
	group.Go(func() error { return c.replicator(starting, ch) })
	if err := group.Wait(); err != nil || c.NoNetworking {
		return err
	}
	return c.networksAssigned(ctx)
}

// env returns the environment that Liqo's processes have in their pods. It also sets TMPDIR, because the webhook
// server reads its certificate from a folder in TMPDIR.
func (c *cluster) env() []string {
	return []string{
		"KUBECONFIG=" + c.kubeconfig, "POD_NAMESPACE=" + liqoNamespace, "POD_NAME=" + c.name + "-pod", "CLUSTER_ID=" + c.name,
		"DEPLOYMENT_NAME=liqo-webhook", "TMPDIR=" + c.tmp(),
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + strconv.Itoa(c.ports.api),
	}
}

func (c *cluster) tmp() string { return filepath.Join(c.Root, c.name+"-tmp") }

// webhook starts Liqo's webhook server. When the webhook server answers, the function webhook configures the API
// server to call the webhook server by URL, with our authority. It omits --secret-name, so that the webhook server
// does not make a certificate of its own. It sets --podcidr, because virtual kubelets otherwise panic when a
// namespace is offloaded: the chart of Liqo 1.1 renders an empty --podcidr, and the chart of Liqo 1.2 renders none.
func (c *cluster) webhook(ctx context.Context, ch chart) error {
	args, err := ch.args("liqo-webhook", c.name, "--secret-name", "--webhook-port", "--podcidr")
	if err != nil {
		return err
	}
	certs := filepath.Join(c.tmp(), "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(certs, 0o700); err != nil {
		return fmt.Errorf("give webhook of %s its certificate: %w", c.name, err)
	}
	for name, from := range map[string]string{"tls.crt": c.pki.serverCert, "tls.key": c.pki.serverKey} {
		if err := os.Symlink(from, filepath.Join(certs, name)); err != nil {
			return fmt.Errorf("give webhook of %s its certificate: %w", c.name, err)
		}
	}
	p, err := c.startContainer("liqo-webhook", c.liqo("webhook"), append(args, flags(
		"--webhook-port", strconv.Itoa(c.ports.webhook), "--podcidr", c.podCIDR(),
		"--metrics-address", loopback(c.ports.webhookMetrics), "--health-probe-address",
		loopback(c.ports.webhookProbe))...))
	if err != nil {
		return err
	}
	if err := p.Until(ctx, answers(c.ports.webhookProbe, "/readyz")); err != nil {
		return err
	}
	ca, err := os.ReadFile(c.pki.caCert)
	if err != nil {
		return fmt.Errorf("register webhook of %s: %w", c.name, err)
	}
	configurations := []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	for _, kind := range configurations {
		for _, o := range ch[kind] {
			if err := byURL(o, c.ports.webhook, ca); err != nil {
				return err
			}
		}
	}
	return c.apply(ctx, ch, configurations...)
}

// byURL replaces the Service in a webhook configuration by the webhook's URL on loopback, because the Service has no
// endpoints here.
func byURL(o *unstructured.Unstructured, port int, ca []byte) error {
	webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("read webhooks of %s: %w", o.GetName(), err)
	}
	for _, w := range webhooks {
		m, ok := w.(map[string]any)
		if !ok {
			return fmt.Errorf("read webhooks of %s: not a list of objects", o.GetName())
		}
		path, _, _ := unstructured.NestedString(m, "clientConfig", "service", "path")
		m["clientConfig"] = map[string]any{"url": "https://" + loopback(port) + path,
			"caBundle": base64.StdEncoding.EncodeToString(ca)}
	}
	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}

const managerDeployment = "liqo-controller-manager"

// applyManagerDeployment applies the Deployment of the controller manager with zero pods, because the controller
// manager runs as a process. The Deployment is needed because Liqo reads it to find out whether Liqo is being
// uninstalled, and because users read Liqo's version from it.
func (c *cluster) applyManagerDeployment(ctx context.Context, ch chart) error {
	for _, d := range ch["Deployment"] {
		if d.GetName() != managerDeployment {
			continue
		}
		d = d.DeepCopy()
		if err := unstructured.SetNestedField(d.Object, int64(0), "spec", "replicas"); err != nil {
			return fmt.Errorf("apply Deployment %s: %w", managerDeployment, err)
		}
		return c.applyOne(ctx, d)
	}
	return fmt.Errorf("apply Deployment %s: Liqo's chart has none", managerDeployment)
}

func (c *cluster) manager(ctx context.Context, ch chart) error {
	args, err := ch.args(managerDeployment, c.name, "--webhook-port", "--ipam-server")
	if err != nil {
		return err
	}
	if !c.NoNetworking {
		args = append(args, "--ipam-server="+loopback(c.ports.ipam))
	}
	return c.startUntil(ctx, "liqo-cm", c.liqo("liqo-controller-manager"), append(args, flags("--webhook-port",
		strconv.Itoa(c.ports.unusedWebhook),
		"--metrics-address", loopback(c.ports.managerMetrics), "--health-probe-address", loopback(c.ports.managerProbe))...),
		answers(c.ports.managerProbe, "/readyz"))
}

func (c *cluster) replicator(ctx context.Context, ch chart) error {
	args, err := ch.args("liqo-crd-replicator", c.name)
	if err != nil {
		return err
	}
	// crd-replicator has no probe. It serves its metrics as soon as its manager runs.
	return c.startUntil(ctx, "crd-replicator", c.liqo("crd-replicator"), append(args, flags("--metrics-address",
		loopback(c.ports.replicatorMetrics))...),
		answers(c.ports.replicatorMetrics, "/metrics"))
}

func (c *cluster) startUntil(ctx context.Context, name, path string, args []string,
	ready func(context.Context) error) error {
	p, err := c.startContainer(name, path, args)
	if err != nil {
		return err
	}
	return p.Until(ctx, ready)
}

// probeTimeout bounds one check whether a process answers. Suppose that the process has ended, and that another
// process listens on the same port and does not answer: without this bound, the lab would not notice the end.
const probeTimeout = 3 * time.Second

// answers returns a condition for proc.Process.Until: a GET of the path returns 200.
func answers(port int, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+path, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", req.URL, res.Status)
		}
		return nil
	}
}
