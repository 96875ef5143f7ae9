package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// providerRights are what the account on a provider must be able to do in its tenant namespace; the test of
// provider-access holds them against what that prints.
var providerRights = []Right{
	{"create", "authentication.liqo.io", "tenants"}, {"list", "authentication.liqo.io", "resourceslices"},
	{"create", "", "secrets"}, {"create", "networking.liqo.io", "configurations"},
}

func (r *Report) provider(ctx context.Context, p Provider, now time.Time) {
	where := "provider " + p.Name
	if left := p.End.Sub(now); !p.End.IsZero() && left < soon {
		r.add("provider-credentials-end", where, "the credentials end on %s", p.End.UTC().Format(time.RFC3339))
	}
	v, err := p.Kube.Discovery().ServerVersion()
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		r.add("provider-refuses", where, "its API server refuses the credentials: %v", err)
		return
	case err != nil:
		r.add("provider-unreachable", where, "%v", err)
		return
	}
	r.examined("%s: Kubernetes %s", where, v.GitVersion)
	if parsed, err := version.ParseGeneric(v.GitVersion); err == nil && parsed.LessThan(oldestKubernetes) {
		r.add("provider-kubernetes-too-old", where, "its version is %s", parsed)
	}
	list, err := p.Kube.Discovery().ServerGroups()
	if err != nil {
		r.skipped("APIs of "+where, err)
		return
	}
	if !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == "authentication.liqo.io" }) {
		r.add("provider-liqo-missing", where, "it does not know Liqo's API authentication.liqo.io")
		return
	}
	if p.ConsumerID == "" {
		r.skipped("permissions at "+where, errNoConsumer)
		return
	}
	r.providerMay(ctx, p, where)
}

var errNoConsumer = errors.New("the credentials are not those of an account that provider-access makes, so its " +
	"tenant namespace is not known")

func (r *Report) providerMay(ctx context.Context, p Provider, where string) {
	var lacking []string
	for _, right := range providerRights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "liqo-tenant-" + p.ConsumerID,
				Verb: right.Verb, Group: right.Group, Resource: right.Resource}}}
		got, err := p.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			r.skipped("permissions at "+where, err)
			return
		}
		if !got.Status.Allowed {
			lacking = append(lacking, right.Verb+" "+right.Resource)
		}
	}
	if len(lacking) > 0 {
		r.add("provider-rights", where, "in namespace liqo-tenant-%s the account may not %s", p.ConsumerID,
			strings.Join(lacking, ", "))
	}
}
