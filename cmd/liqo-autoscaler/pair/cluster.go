package pair

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// cluster connects to one of the two clusters with the permissions of its administrator.
type cluster struct {
	side    string // "consumer" or "provider"
	context string
	admin   *rest.Config
	kube    kubernetes.Interface
	objects dynamic.Interface
}

// String returns the name of the cluster in messages.
func (c *cluster) String() string { return fmt.Sprintf("%s (context %s)", c.side, c.context) }

// These constants limit the requests to one API server. A run of setup sends about a hundred requests.
const (
	requestTime = 20 * time.Second
	perSecond   = 50
)

// open returns a client for the cluster of a context in the kubeconfig. It makes no request.
func open(side, kubeconfig, context string) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	client := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context})
	known, err := client.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig (--kubeconfig, KUBECONFIG or ~/.kube/config): %w", err)
	}
	if known.Contexts[context] == nil {
		return nil, fmt.Errorf("--%s-context %q: the kubeconfig (--kubeconfig, KUBECONFIG or ~/.kube/config) has no such "+
			"context; it has: %s", side, context, strings.Join(slices.Sorted(maps.Keys(known.Contexts)), ", "))
	}
	c := &cluster{side: side, context: context}
	if c.admin, err = client.ClientConfig(); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if why := account.Unverified(c.admin); why != "" {
		return nil, fmt.Errorf("%s: its entry in the kubeconfig %s", c, why)
	}
	c.admin.Timeout, c.admin.QPS, c.admin.Burst = requestTime, perSecond, 2*perSecond
	if c.kube, err = kubernetes.NewForConfig(c.admin); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if c.objects, err = dynamic.NewForConfig(c.admin); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return c, nil
}
