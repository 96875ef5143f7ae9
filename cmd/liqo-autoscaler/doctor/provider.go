package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

// providerRights are the permissions that the consumer's account on a provider needs in its tenant namespace. A test
// compares them with the manifests of provider-access.
var providerRights = []Right{
	{"create", "authentication.liqo.io", "tenants"}, {"list", "authentication.liqo.io", "resourceslices"},
	{"create", "", "secrets"}, {"create", "networking.liqo.io", "configurations"},
}

// provider checks a provider. If consumer is not nil, it also checks that the provider and the consumer can peer.
func (r *Report) provider(ctx context.Context, p Provider, consumer *cluster, now time.Time) {
	where := "provider " + p.Name
	if late := p.Life.Late(); !late.IsZero() && now.After(late) {
		r.add("provider-credentials-end", where, "the credentials expire on %s", p.Life.End.UTC().Format(time.RFC3339))
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
	if r.skipped("APIs of "+where, err) {
		return
	}
	if !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == "authentication.liqo.io" }) {
		r.add("provider-liqo-missing", where, "it does not have Liqo's API authentication.liqo.io")
		return
	}
	if consumer != nil && consumer.liqo != nil {
		r.versions(ctx, p, consumer.liqo, where)
	}
	if p.ConsumerID == "" {
		r.skipped("permissions at "+where, errNoConsumer)
		return
	}
	r.providerMay(ctx, p, where)
}

// versions checks the versions of Liqo on the consumer and on the provider. It searches for Liqo on the provider in
// the namespace in which Liqo runs on the consumer.
func (r *Report) versions(ctx context.Context, p Provider, here *appsv1.Deployment, where string) {
	there, err := p.Kube.AppsV1().Deployments(here.Namespace).Get(ctx, liqoversion.Deployment, metav1.GetOptions{})
	if r.skipped("the version of Liqo at "+where, err) {
		return
	}
	r.examined("%s: Liqo %s", where, liqoversion.Of(there))
	switch problem, refused := liqoversion.Judge(liqoversion.Of(here), liqoversion.Of(there)); {
	case refused:
		r.add("provider-liqo-version", where, "%s", problem)
	case problem != "":
		r.add("provider-liqo-untested", where, "%s", problem)
	}
}

var errNoConsumer = errors.New("the credentials do not belong to an account of provider-access, so its " +
	"tenant namespace is unknown")

func (r *Report) providerMay(ctx context.Context, p Provider, where string) {
	var lacking []string
	for _, right := range providerRights {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "liqo-tenant-" + p.ConsumerID,
				Verb: right.Verb, Group: right.Group, Resource: right.Resource}}}
		got, err := p.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if r.skipped("permissions at "+where, err) {
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
