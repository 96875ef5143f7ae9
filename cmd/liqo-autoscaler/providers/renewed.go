package providers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// These constants limit the time and the size of a provider's response.
const (
	answerTime = 20 * time.Second
	maxAnswer  = 64 << 10
)

// errNoToken is the error for a kubeconfig without the token of a ServiceAccount.
var errNoToken = errors.New("the kubeconfig has no token: only tokens of ServiceAccounts can be renewed")

// tokenOf parses a kubeconfig, and returns it with its current user. It returns an error when the user has no token.
func tokenOf(text []byte) (*clientcmdapi.Config, *clientcmdapi.AuthInfo, error) {
	parsed, err := clientcmd.Load(text)
	if err != nil || parsed.Contexts[parsed.CurrentContext] == nil {
		return nil, nil, errors.New("the kubeconfig has no current context")
	}
	user := parsed.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo]
	if user == nil || user.Token == "" {
		return nil, nil, errNoToken
	}
	return parsed, user, nil
}

// renewed returns the kubeconfig with a new token of the same account. Its errors do not quote the kubeconfig. It
// blocks until the provider responds, for at most answerTime.
func renewed(ctx context.Context, text []byte, lasts time.Duration) (renewed []byte, end time.Time, err error) {
	parsed, user, err := tokenOf(text)
	if err != nil {
		return nil, end, err
	}
	namespace, name, err := account.Of(user.Token)
	if err != nil {
		return nil, end, err
	}
	// Only the user's token is used: a kubeconfig may also name a program to run, and the author of the kubeconfig is
	// not trusted.
	bare := parsed.DeepCopy()
	bare.AuthInfos[parsed.Contexts[parsed.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: user.Token}
	access, err := clientcmd.NewDefaultClientConfig(*bare, nil).ClientConfig()
	if err != nil {
		return nil, end, errors.New("the kubeconfig has no current context")
	}
	if why := account.Unverified(access); why != "" {
		return nil, end, errors.New("the kubeconfig " + why)
	}
	kube, err := clientOf(access)
	if err != nil {
		return nil, end, errors.New("the kubeconfig cannot be used: its certificates or address are malformed")
	}
	user.Token, end, err = newToken(ctx, kube, namespace, name, lasts)
	if err != nil {
		return nil, end, err
	}
	renewed, err = clientcmd.Write(*parsed)
	return renewed, end, err
}

// clientOf returns a client for the API server of a provider. The provider is not trusted, so the client limits the
// size and the time of responses, and does not follow redirects.
func clientOf(access *rest.Config) (kubernetes.Interface, error) {
	access.DisableCompression = true
	access.ContentType = runtime.ContentTypeJSON
	access.WarningHandler = rest.NoWarnings{}
	access.Timeout = answerTime
	access.Wrap(func(web http.RoundTripper) http.RoundTripper { return bounded{web} })
	web, err := rest.HTTPClientFor(access)
	if err != nil {
		return nil, err
	}
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return kubernetes.NewForConfigAndClient(access, web)
}

// bounded limits the size of a provider's responses.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}
