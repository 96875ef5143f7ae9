package pair

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

// identity identifies a cluster and contains its versions.
type identity struct {
	ID         string `json:"id"`  // Liqo's cluster id
	UID        string `json:"uid"` // UID of the namespace kube-system
	Liqo       string `json:"liqo"`
	Kubernetes string `json:"kubernetes"`
	// liqoNamespace is the namespace where Liqo runs. The field ready is false while Liqo's controllers are not
	// ready.
	liqoNamespace string
	ready         bool
}

// These constants describe Liqo's ConfigMap with the cluster id (Liqo pkg/consts/clusterid.go).
const (
	idSelector = "app.kubernetes.io/name=clusterid-configmap"
	idKey      = "CLUSTER_ID"
)

// identify reads the identity of a cluster. It returns errNoLiqo if Liqo is not installed.
func (c *cluster) identify(ctx context.Context) (id identity, err error) {
	version, err := c.kube.Discovery().ServerVersion()
	if err != nil {
		return id, fmt.Errorf("%s: reach its API server: %w", c, err)
	}
	system, err := c.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return id, fmt.Errorf("%s: read the UID of namespace kube-system: %w", c, err)
	}
	found, err := c.kube.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: idSelector})
	if err != nil {
		return id, fmt.Errorf("%s: find Liqo's cluster id: %w", c, err)
	}
	if len(found.Items) != 1 {
		return id, fmt.Errorf("%s: %w: %d ConfigMaps have the label %s, but exactly one is needed: install Liqo with "+
			"liqoctl install", c, errNoLiqo, len(found.Items), idSelector)
	}
	id = identity{ID: found.Items[0].Data[idKey], UID: string(system.UID), Kubernetes: version.GitVersion,
		liqoNamespace: found.Items[0].Namespace}
	if !fleet.ValidProviderID(id.ID) {
		return id, fmt.Errorf("%s: ConfigMap %s/%s has the %s %.80q, which is not a Liqo cluster id: repair it with liqoctl "+
			"install --cluster-id", c, id.liqoNamespace, found.Items[0].Name, idKey, id.ID)
	}
	manager, err := c.kube.AppsV1().Deployments(id.liqoNamespace).Get(ctx, liqoversion.Deployment, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return id, fmt.Errorf("%s: %w: namespace %s has no Deployment %s: complete the installation of Liqo", c, errNoLiqo,
			id.liqoNamespace, liqoversion.Deployment)
	case err != nil:
		return id, fmt.Errorf("%s: read the version of Liqo: %w", c, err)
	}
	id.Liqo, id.ready = liqoversion.Of(manager), manager.Status.ReadyReplicas > 0
	return id, nil
}

// errNoLiqo is the error for a cluster without Liqo.
var errNoLiqo = errors.New("Liqo is not installed")

// checkIdentities returns an error if the two clusters cannot be a consumer and its provider, and a warning if their
// versions of Liqo are not tested together.
func checkIdentities(consumer, provider identity) (warning string, err error) {
	switch {
	case consumer.UID == provider.UID:
		return "", fmt.Errorf("consumer and provider are the same cluster, %s (kube-system has the UID %s): give two "+
			"clusters",
			consumer.ID, consumer.UID)
	case consumer.ID == provider.ID:
		return "", fmt.Errorf("consumer and provider have the same Liqo cluster id, %s: install Liqo in one of them with "+
			"another --cluster-id", consumer.ID)
	}
	problem, refused := liqoversion.Judge(consumer.Liqo, provider.Liqo)
	if refused {
		return "", errors.New(problem)
	}
	return problem, nil
}
