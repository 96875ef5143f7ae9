package pair

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// valid reports whether a kubeconfig can stay in use. The kubeconfig must be for this server and for the consumer's
// account. Its token must be accepted by the provider, and not be due for renewal.
func (c *cluster) valid(ctx context.Context, kubeconfig []byte, consumer, server string, now time.Time) (bool, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil || parsed.Contexts[parsed.CurrentContext] == nil {
		return false, nil //nolint:nilerr // setup replaces the kubeconfig
	}
	current := parsed.Contexts[parsed.CurrentContext]
	at, user := parsed.Clusters[current.Cluster], parsed.AuthInfos[current.AuthInfo]
	if at == nil || user == nil || at.Server != server {
		return false, nil
	}
	namespace, name, err := account.Of(user.Token)
	if err != nil || namespace != provider.Namespace || name != provider.Account(consumer) {
		return false, nil //nolint:nilerr // setup replaces the kubeconfig
	}
	if late := account.LifeOfToken(user.Token).Late(); !late.IsZero() && now.After(late) {
		return false, nil
	}
	review, err := c.kube.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: user.Token}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("%s: check the token in the consumer's Secret: %w", c, err)
	}
	return review.Status.Authenticated, nil
}
