package doctor

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (r *Report) processes(c *cluster) {
	if !c.deployments {
		return
	}
	if len(c.servers) == 0 {
		r.add("server-missing", "Deployments and StatefulSets", "no pod template runs liqo-autoscaler grpcserver")
	}
	if len(c.workers) == 0 {
		r.add("worker-missing", "Deployments and StatefulSets", "no pod template runs liqo-autoscaler worker")
	}
	for _, p := range c.servers {
		r.ready(p, "server-not-ready")
	}
	for _, p := range c.workers {
		r.ready(p, "worker-not-ready")
	}
	if len(c.servers) == 1 && len(c.workers) == 1 && c.servers[0].container.Image != c.workers[0].container.Image {
		r.add("versions-differ", c.workers[0].where(), "it runs %s, but the server runs %s", c.workers[0].container.Image,
			c.servers[0].container.Image)
	}
}

func (r *Report) ready(p process, id ID) {
	wanted := int32(1)
	if n := p.replicas; n != nil {
		wanted = *n
	}
	r.examined("%s: %d of %d pods ready", p.where(), p.workload.ready, wanted)
	if p.workload.ready == 0 {
		r.add(id, p.where(), "none of %d pods is ready", wanted)
	}
}

// claims reports the PersistentVolumeClaims of a StatefulSet's first pod that have not received a volume yet. The pod
// does not start before its claims have volumes.
func (r *Report) claims(ctx context.Context, c *cluster, s *appsv1.StatefulSet) {
	for _, template := range s.Spec.VolumeClaimTemplates {
		name := template.Name + "-" + s.Name + "-0"
		where := "PersistentVolumeClaim " + s.Namespace + "/" + name
		claim, err := c.kube.CoreV1().PersistentVolumeClaims(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || r.skipped(where, err) {
			continue
		}
		r.examined("%s: %s", where, claim.Status.Phase)
		if claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		class := "no storage class, and the cluster has no default"
		if of := claim.Spec.StorageClassName; of != nil && *of != "" {
			class = "storage class " + *of
		}
		r.add("claim-pending", where, "it has no volume yet (%s, %v), so the pod of StatefulSet %s does not start", class,
			claim.Spec.AccessModes, s.Name)
	}
}

// Right is a permission: a verb on a resource.
type Right struct{ Verb, Group, Resource string }

// WorkerRights is a sample of the permissions that a worker needs, to detect a missing or outdated role. A test
// compares it with the role in the chart.
var WorkerRights = []Right{
	{"list", "", "nodes"}, {"patch", "", "nodes"}, {"delete", "", "nodes"}, {"create", "", "pods/eviction"},
	{"create", "", "namespaces"}, {"create", "authentication.liqo.io", "resourceslices"},
	{"delete", "authentication.liqo.io", "resourceslices"}, {"create", "authentication.liqo.io", "identities"},
	{"create", "offloading.liqo.io", "virtualnodes"}, {"delete", "offloading.liqo.io", "virtualnodes"},
	{"create", "networking.liqo.io", "gatewayclients"}, {"delete", "networking.liqo.io", "gatewayservers"},
}

// rights checks with SubjectAccessReviews that the workers' accounts have WorkerRights.
func (r *Report) rights(ctx context.Context, c *cluster) {
	for _, p := range c.workers {
		account := p.pod.ServiceAccountName
		user := fmt.Sprintf("system:serviceaccount:%s:%s", p.namespace, account)
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
