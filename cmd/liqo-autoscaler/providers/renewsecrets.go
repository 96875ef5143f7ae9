package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// labelRenew is the label that enables ("true") or disables ("false") the renewal of a Secret in the namespaces of
// --secrets-in.
const labelRenew = "liqo-autoscaler.io/renew"

// These constants limit one run of the command.
const (
	atOnce     = 10 // concurrent requests to providers
	maxSecrets = 5000
)

// secretKey identifies a key of a Secret that contains a kubeconfig.
type secretKey struct{ namespace, name, key string }

func (h secretKey) String() string { return h.namespace + "/" + h.name }

// errSkipped means that this command does not renew a kubeconfig. The error that wraps errSkipped contains the
// reason.
var errSkipped = errors.New("skipped")

// inSecrets renews the kubeconfig in each Secret, and prints one line for each Secret. It continues after a failure,
// and returns an error with all failures.
func (r renewals) inSecrets(ctx context.Context, out io.Writer) error {
	access, err := administrator(r.kubeconfig)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	return r.renewAll(ctx, kube, out)
}

func (r renewals) renewAll(ctx context.Context, kube kubernetes.Interface, out io.Writer) error {
	all, err := r.holdings(ctx, kube)
	if err != nil {
		return err
	}
	var told sync.Mutex
	var failed []error
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, h := range all {
		group.Go(func() error {
			said, err := r.inSecret(ctx, kube, h)
			told.Lock()
			defer told.Unlock()
			switch {
			case err == nil:
				fmt.Fprintln(out, said)
			case r.due && errors.Is(err, errSkipped):
				fmt.Fprintln(out, shorten.OneLine(fmt.Sprintf("%s is %v", h, err)))
			default:
				failed = append(failed, fmt.Errorf("key %s of Secret %s: %w", h.key, h, err))
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(failed...)
}

// holdings returns the keys of the Secrets that the flags select, without duplicates.
func (r renewals) holdings(ctx context.Context, kube kubernetes.Interface) (all []secretKey, err error) {
	seen := map[string]bool{}
	add := func(h secretKey) {
		if !seen[h.String()] {
			seen[h.String()] = true
			all = append(all, h)
		}
	}
	for _, named := range r.secrets {
		parts := append(strings.SplitN(named, "/", 3), r.key)
		add(secretKey{parts[0], parts[1], parts[2]})
	}
	for _, namespace := range r.namespaces {
		for _, selector := range []string{labelRenew + "=true", secrets.Label.String()} {
			found, err := kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector,
				Limit: maxSecrets})
			if err != nil {
				return nil, fmt.Errorf("list Secrets in namespace %s: %w", namespace, err)
			}
			if found.Continue != "" {
				return nil, fmt.Errorf("namespace %s has more than %d Secrets with the label %s", namespace, maxSecrets, selector)
			}
			for i := range found.Items {
				add(secretKey{namespace, found.Items[i].Name, r.key})
			}
		}
	}
	return all, nil
}

// inSecret renews the kubeconfig in one Secret. It returns an error when the Secret has changed since it was read.
func (r renewals) inSecret(ctx context.Context, kube kubernetes.Interface, h secretKey) (said string, err error) {
	secret, err := kube.CoreV1().Secrets(h.namespace).Get(ctx, h.name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if why := reasonToSkip(secret); why != "" && r.due {
		return "", fmt.Errorf("%w: %s", errSkipped, why)
	}
	text := secret.Data[h.key]
	_, user, err := tokenOf(text)
	switch {
	case errors.Is(err, errNoToken):
		return "", fmt.Errorf("%w: %w", errSkipped, err)
	case err != nil:
		return "", err
	}
	if due := account.LifeOfToken(user.Token).Due(); r.due && time.Now().Before(due) {
		return fmt.Sprintf("%s is not due before %s", h, due.UTC().Format(time.RFC3339)), nil
	}
	text, end, err := renewed(ctx, text, r.lasts)
	if err != nil {
		return "", err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": secret.ResourceVersion},
		"data": map[string][]byte{h.key: text}})
	if err != nil {
		return "", err
	}
	_, err = kube.CoreV1().Secrets(h.namespace).Patch(ctx, h.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return hasToken(h.String(), end), err
}

// managers contains labels and annotations. The value is the program that sets this key on the objects that it
// manages.
var managers = map[string]string{
	"argocd.argoproj.io/tracking-id":      "Argo CD",
	"argocd.argoproj.io/instance":         "Argo CD",
	"kustomize.toolkit.fluxcd.io/name":    "Flux",
	"helm.toolkit.fluxcd.io/name":         "Flux",
	"meta.helm.sh/release-name":           "Helm",
	"reconcile.external-secrets.io/owner": "External Secrets",
}

// reasonToSkip returns the reason for which this command must not change the Secret, or "" if the command may change
// it.
func reasonToSkip(secret *corev1.Secret) string {
	const undoes = " writes it from another source, and would undo the change: renew the token in that source"
	switch {
	case secret.Labels[labelRenew] == "false":
		return "its label " + labelRenew + " is false"
	case secret.Immutable != nil && *secret.Immutable:
		return "it is immutable"
	case len(secret.OwnerReferences) > 0:
		return secret.OwnerReferences[0].Kind + " " + secret.OwnerReferences[0].Name + undoes
	}
	for _, marks := range []map[string]string{secret.Labels, secret.Annotations} {
		for key, by := range managers {
			if _, marked := marks[key]; marked {
				return by + undoes
			}
		}
	}
	return ""
}
