package microvm

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const (
	annotationPin     = "liqo-autoscaler.io/pin"     // on a peering's record: host.pin
	annotationRefusal = "liqo-autoscaler.io/refusal" // on a record with LabelRefused: JSON of fleet.ProviderRefusal

	finalizer = "liqo-autoscaler.io/machine"
)

func peeringName(provider string) string       { return "provider." + provider }
func attemptName(attempt fleet.Attempt) string { return "node." + attempt.ObjectName() }

// attemptIn returns the object name of the attempt from the name of its record.
func attemptIn(record string) (string, bool) { return strings.CutPrefix(record, "node.") }

// ours returns the labels of this hub's records.
func (b *Backend) ours() client.MatchingLabels { return backend.Ours(b.config.Hub) }

func (b *Backend) isOurs(record *corev1.ConfigMap) bool {
	return backend.Carries(record.Labels, b.ours())
}

// tags returns the labels of an attempt's record, which are also the annotations of its Node.
func (b *Backend) tags(a fleet.Attempt) map[string]string { return backend.TagsOf(a, b.ours()) }

// attemptOf returns the attempt of an object with these tags and this name. The result ok is true only if the attempt
// belongs to this hub.
func (b *Backend) attemptOf(tags map[string]string, name, provider string) (a fleet.Attempt, ok bool) {
	a, ok = backend.AttemptOf(tags)
	a.Provider.ID = provider
	return a, ok && backend.Carries(tags, b.ours()) && name == a.ObjectName()
}

// record reads a record. It returns nil when the record does not exist.
func (b *Backend) record(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	var found corev1.ConfigMap
	err := b.local.Get(ctx, client.ObjectKey{Namespace: b.config.Namespace, Name: name}, &found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &found, err
}

// attemptRecord reads the attempt's own record. It returns nil when the record does not exist.
func (b *Backend) attemptRecord(ctx context.Context, a fleet.Attempt) (*corev1.ConfigMap, error) {
	record, err := b.record(ctx, attemptName(a))
	if err != nil || record == nil || !backend.Carries(record.Labels, b.tags(a)) {
		return nil, err
	}
	return record, nil
}

// records lists the records that carry the labels, of all hubs.
func (b *Backend) records(ctx context.Context, labels client.ListOption) ([]corev1.ConfigMap, error) {
	var found corev1.ConfigMapList
	if err := b.local.List(ctx, &found, client.InNamespace(b.config.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return found.Items, nil
}

// newRecord creates a record about the provider.
func (b *Backend) newRecord(ctx context.Context, name string, about fleet.Provider,
	labels, annotations map[string]string, finalizers ...string) error {
	labels[fleet.LabelMachineProvider] = about.ID
	annotations[backend.AnnotationCredentials] = backend.CredentialsText(about.Credentials)
	return b.local.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.config.Namespace, Name: name,
		Labels: labels, Annotations: annotations, Finalizers: finalizers}})
}

// annotate sets annotations and labels of an object. The value nil removes a key. It fails when the object was
// replaced.
func (b *Backend) annotate(ctx context.Context, object client.Object, annotations, labels map[string]any) error {
	metadata := map[string]any{"uid": object.GetUID()}
	if annotations != nil { // JSON null would remove all annotations
		metadata["annotations"] = annotations
	}
	if labels != nil {
		metadata["labels"] = labels
	}
	return nodes.MergePatch(ctx, b.local, object, map[string]any{"metadata": metadata})
}

// unmark removes the mark, so that the attempt's Node is not stamped again.
func (b *Backend) unmark(ctx context.Context, record *corev1.ConfigMap) error {
	if record == nil || record.Annotations[backend.AnnotationStamp] == "" {
		return nil
	}
	err := b.annotate(ctx, record, map[string]any{backend.AnnotationStamp: nil}, nil)
	return client.IgnoreNotFound(err)
}

// node reads the attempt's Node. It returns nil when the Node does not exist, or belongs to another attempt.
func (b *Backend) node(ctx context.Context, a fleet.Attempt) (*corev1.Node, error) {
	var found corev1.Node
	err := b.local.Get(ctx, client.ObjectKey{Name: a.ObjectName()}, &found)
	if apierrors.IsNotFound(err) || err == nil && !isOf(&found, a) {
		return nil, nil
	}
	return &found, err
}

// isOf reports whether a Node with the attempt's name belongs to the attempt. The machine's user data has set the two
// labels that isOf compares.
func isOf(node *corev1.Node, a fleet.Attempt) bool {
	return node.Labels[fleet.LabelGroup] == a.Group && node.Labels[fleet.LabelMachineProvider] == a.Provider.ID
}
