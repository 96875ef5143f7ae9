package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (r *Report) processes(c *cluster) {
	if !c.deployments {
		return
	}
	if len(c.servers) == 0 {
		r.add("server-missing", "Deployments", "none runs liqo-autoscaler grpcserver")
	}
	if len(c.workers) == 0 {
		r.add("worker-missing", "Deployments", "none runs liqo-autoscaler worker")
	}
	for _, p := range c.servers {
		r.ready(p, "server-not-ready")
	}
	for _, p := range c.workers {
		r.ready(p, "worker-not-ready")
	}
	if len(c.servers) == 1 && len(c.workers) == 1 && c.servers[0].container.Image != c.workers[0].container.Image {
		r.add("versions-differ", c.workers[0].where(), "it runs %s, and the server %s", c.workers[0].container.Image,
			c.servers[0].container.Image)
	}
}

func (r *Report) ready(p process, id ID) {
	wanted := int32(1)
	if n := p.deployment.Spec.Replicas; n != nil {
		wanted = *n
	}
	r.examined("%s: %d of %d pods ready", p.where(), p.deployment.Status.ReadyReplicas, wanted)
	if p.deployment.Status.ReadyReplicas == 0 {
		r.add(id, p.where(), "none of %d pods is ready", wanted)
	}
}

// Right is one of those that a worker cannot do without; the test of the chart holds them against its role.
type Right struct{ Verb, Group, Resource string }

// WorkerRights are enough to notice a role that is missing or old.
var WorkerRights = []Right{
	{"list", "", "nodes"}, {"patch", "", "nodes"}, {"delete", "", "nodes"}, {"create", "", "pods/eviction"},
	{"create", "", "namespaces"}, {"create", "authentication.liqo.io", "resourceslices"},
	{"delete", "authentication.liqo.io", "resourceslices"}, {"create", "authentication.liqo.io", "identities"},
	{"create", "offloading.liqo.io", "virtualnodes"}, {"delete", "offloading.liqo.io", "virtualnodes"},
	{"create", "networking.liqo.io", "gatewayclients"}, {"delete", "networking.liqo.io", "gatewayservers"},
}

// rights asks what the workers' accounts may do.
func (r *Report) rights(ctx context.Context, c *cluster) {
	for _, p := range c.workers {
		account := p.deployment.Spec.Template.Spec.ServiceAccountName
		user := fmt.Sprintf("system:serviceaccount:%s:%s", p.deployment.Namespace, account)
		var lacking []string
		for _, right := range WorkerRights {
			resource, sub, _ := strings.Cut(right.Resource, "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: right.Verb, Group: right.Group,
					Resource: resource, Subresource: sub}}}
			got, err := c.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if r.skipped("permissions of "+user, err) {
				return
			}
			if !got.Status.Allowed {
				lacking = append(lacking, right.Verb+" "+right.Resource)
			}
		}
		r.examined("permissions of %s", user)
		if len(lacking) > 0 {
			r.add("worker-rights", p.where(), "its account %s may not %s", account, strings.Join(lacking, ", "))
		}
	}
}
