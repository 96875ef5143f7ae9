package liqo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// newProviderClient makes a client of a provider. rejectForeignAnswers and boundedTransport describe its limits.
func newProviderClient(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	config.ContentType = runtime.ContentTypeJSON
	config.WarningHandler = rest.NoWarnings{} // otherwise warnings of any length would be logged
	config.Wrap(func(web http.RoundTripper) http.RoundTripper { return boundedTransport{web} })
	provider, err := newClient(config, cmp.Or(config.Timeout, providerTimeout), func(web *http.Client) {
		// The client does not follow redirects, so that a provider cannot make it send requests to an address of its
		// choice.
		web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	})
	if err != nil {
		return nil, err
	}
	return rejectForeignAnswers(provider, func(code int32) error {
		return errorf(backend.ErrUnreachable,
			"the provider's address answers with HTTP status %d, and not as a Kubernetes API server does", code)
	}), nil
}

// limitAnswers returns a copy of the client configuration for this cluster. The copy limits the size of the answers
// (limitedTransport).
func limitAnswers(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(web http.RoundTripper) http.RoundTripper { return limitedTransport{web} })
	return config
}

// newConsumerClient makes a client of this cluster; see rejectForeignAnswers.
func newConsumerClient(config *rest.Config) (client.Client, error) {
	consumer, err := newClient(limitAnswers(config), consumerTimeout)
	if err != nil {
		return nil, err
	}
	return rejectForeignAnswers(consumer, func(code int32) error {
		return fmt.Errorf("this cluster's address answers with HTTP status %d, and not as a Kubernetes API server does", code)
	}), nil
}

// rejectForeignAnswers distinguishes the answers of a cluster's API server from the answers of an intermediate
// server. A load balancer, or a cluster manager's proxy that has lost the cluster, answers 404 or 403 in its own
// name. If such an answer were treated as an answer of the cluster, every object of the cluster would seem to be
// deleted or forbidden. The function foreign returns the error for such an answer.
func rejectForeignAnswers(cluster client.WithWatch, foreign func(code int32) error) client.Client {
	genuine := func(ctx context.Context, c client.Client, err error) error {
		if answered(ctx, c, err) {
			return err
		}
		var status apierrors.APIStatus
		var code int32
		if errors.As(err, &status) {
			code = status.Status().Code
		}
		return foreign(code)
	}
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			return genuine(ctx, c, c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return genuine(ctx, c, c.List(ctx, list, opts...))
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return genuine(ctx, c, c.Create(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			return genuine(ctx, c, c.Patch(ctx, o, patch, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return genuine(ctx, c, c.Delete(ctx, o, opts...))
		},
	})
}

// answered reports whether an API server has written the error. Do not quote the text of any other error, because it
// is a page of an unknown server. An API server always writes a Status, with one exception: for a kind that is not
// installed it answers 404 in plain text. After such a 404, answered requests an object that every API server has. It
// also returns true for a 401 of any server, because accessError handles a 401.
func answered(ctx context.Context, cluster client.Client, err error) bool {
	if !apierrors.IsUnexpectedServerError(err) || apierrors.IsUnauthorized(err) {
		return true
	}
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	known := cluster.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
	return known == nil || errors.As(known, &status) && !apierrors.IsUnexpectedServerError(known)
}
