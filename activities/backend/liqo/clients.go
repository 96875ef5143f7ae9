package liqo

import (
	"context"
	"net/http"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/traced"
)

// These are the timeouts of one request. A cluster that accepts connections and never answers must not block a verb,
// because the verb's caller expects progress every few seconds.
const (
	consumerTimeout = 10 * time.Second
	providerTimeout = 5 * time.Second
	watchTimeout    = 0 // a watch is one long request
)

// These constants limit the requests per second of this worker to one cluster, unless the cluster's configuration
// sets another limit. Up to three hundred steps run concurrently on the consumer and share its limit. With a limit of
// 50, the steps of a large batch made no progress from one pass to the next.
const (
	maxQPS   = 500
	maxBurst = 1000
)

// newClient makes an uncached client that sends no request before its first use. Its mapper contains all kinds, so it
// needs no discovery, which would cost each verb on a provider additional requests.
func newClient(config *rest.Config, timeout time.Duration, changes ...func(*http.Client)) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	if config.QPS == 0 { // client-go's default of 5 requests per second suits interactive tools
		config.QPS, config.Burst = maxQPS, maxBurst
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config.Wrap(traced.Transport)
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	own := *web // client-go may return a shared client
	if config.ExecProvider != nil {
		own.Transport = cancellableTransport{web.Transport}
	}
	for _, change := range changes {
		change(&own)
	}
	return client.NewWithWatch(config, client.Options{HTTPClient: &own, Scheme: scheme, Mapper: newMapper()})
}

// cancellableTransport ends a request when its context ends, even while client-go waits for a token from a program
// that the kubeconfig names. client-go lets that program run for any time (client-go plugin/pkg/client/auth/exec).
type cancellableTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i cancellableTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	type answer struct {
		response *http.Response
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		response, err := i.RoundTripper.RoundTrip(request) //nolint:bodyclose // closed by the caller, or below
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-request.Context().Done():
		go func() {
			if late := <-answers; late.response != nil {
				_ = late.response.Body.Close()
			}
		}()
		return nil, context.Cause(request.Context())
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme,
		rbacv1.AddToScheme, authv1beta1.AddToScheme, liqov1beta1.AddToScheme, offloadingv1beta1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// newMapper returns a mapper of exactly the kinds that this package uses.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			mapper.Add(gv.WithKind(kind), scope)
		}
	}
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Namespace", "Node", "PersistentVolume")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "ConfigMap", "Event", "Pod", "Secret")
	add(appsv1.SchemeGroupVersion, meta.RESTScopeNamespace, "Deployment")
	add(rbacv1.SchemeGroupVersion, meta.RESTScopeNamespace, "RoleBinding")
	add(authv1beta1.GroupVersion, meta.RESTScopeNamespace, "Identity", "Renew", "ResourceSlice", "Tenant")
	add(liqov1beta1.GroupVersion, meta.RESTScopeRoot, "ForeignCluster")
	add(offloadingv1beta1.SchemeGroupVersion, meta.RESTScopeNamespace, "NamespaceMap", "NamespaceOffloading",
		"VirtualNode", "VkOptionsTemplate")
	add(networking, meta.RESTScopeNamespace, append(made, kindConnection)...)
	add(ipam, meta.RESTScopeNamespace, "Network")
	return mapper
}
