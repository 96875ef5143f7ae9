// Package liqoversion decides whether two clusters with given versions of Liqo can peer.
package liqoversion

import (
	"fmt"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// Deployment is the name of the Deployment of Liqo's controller, in the namespace of Liqo. Its image tag contains the
// version.
const Deployment = "liqo-controller-manager"

var (
	oldest       = version.MustParseSemantic("1.0.2") // before, public keys had another encoding (Liqo forge/tenant.go)
	oldestTested = version.MustParseSemantic("1.1.0")
	severalNodes = version.MustParseSemantic("1.2.0") // Liqo #3257
	afterNewest  = version.MustParseSemantic("1.3.0-0")
)

// Of returns the version of Liqo that a Deployment runs: the tag of its image. If the tag is not a version (for
// example for a build from a commit), it returns the value of the chart's label, and "" if this is not a version,
// either.
func Of(d *appsv1.Deployment) string {
	var found []string
	for i := range d.Spec.Template.Spec.Containers {
		_, tag, _ := strings.Cut(path.Base(d.Spec.Template.Spec.Containers[i].Image), ":")
		tag, _, _ = strings.Cut(tag, "@")
		found = append(found, tag)
	}
	for _, v := range append(found, d.Labels["app.kubernetes.io/version"]) {
		if _, err := version.ParseSemantic(v); err == nil {
			return strings.TrimPrefix(v, "v")
		}
	}
	return ""
}

// Judge returns the problem of a peering between clusters with these versions of Liqo, or "" if this release is
// tested with both. If refused is true, the peering is forbidden: the versions do not work together, or are newer
// than this release. If refused is false, the problem is only a warning, for example about an unknown version.
func Judge(consumer, provider string) (problem string, refused bool) {
	here, hereErr := version.ParseSemantic(consumer)
	there, thereErr := version.ParseSemantic(provider)
	switch {
	case hereErr != nil || thereErr != nil:
		return fmt.Sprintf("the version of Liqo is unknown for one cluster or both (consumer %q, provider %q)", consumer,
			provider), false
	case here.LessThan(oldest) || there.LessThan(oldest):
		return fmt.Sprintf("Liqo %s on the consumer and %s on the provider: versions before %s are not supported; upgrade "+
			"Liqo", consumer, provider, oldest), true
	case here.Major() != there.Major() || here.Minor() != there.Minor():
		return fmt.Sprintf("Liqo %s on the consumer and %s on the provider: Liqo does not support peerings between "+
			"different minor versions; upgrade the older one", consumer, provider), true
	case here.AtLeast(afterNewest):
		return fmt.Sprintf("Liqo %s is newer than the versions that this release is tested with, 1.1 and 1.2; upgrade "+
			"liqo-autoscaler", consumer), true
	case here.LessThan(oldestTested):
		return fmt.Sprintf("Liqo %s is not tested with this release; 1.1 and 1.2 are", consumer), false
	}
	return "", false
}

// OneNode reports whether a consumer with this version of Liqo may have only one node of each provider. Up to Liqo
// 1.1, a virtual kubelet that restarts deletes the pods on the provider's other nodes (Liqo #3257).
func OneNode(consumer string) bool {
	v, err := version.ParseSemantic(consumer)
	return err == nil && v.LessThan(severalNodes)
}
