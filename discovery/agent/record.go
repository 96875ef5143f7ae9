package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// RecordName is the name of the ConfigMap with the grants of all agents of the cluster. The ConfigMap is in Liqo's
// namespace.
const RecordName = "liqo-autoscaler-grants"

// recordKey is the key of the grants in that ConfigMap.
const recordKey = "grants"

// maxRecord bounds the size of the record in bytes, because an API server accepts a ConfigMap of at most 1 MiB.
const maxRecord = 900 << 10

// grant is an entry of the record: the granted amounts of one slice.
type grant struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	Resources corev1.ResourceList `json:"resources"`
}

// record stores the grants of all agents of the cluster, by the UID of the slice. The agent writes a grant into the
// record before it writes the slice's status, because the consumer may change the status. The record survives a
// restart of the agent. A write succeeds only if the record still has the version that the agent has read. Therefore
// a second agent, or an agent that was delayed, cannot grant the same capacity again. record is safe for concurrent
// use.
type record struct {
	kube      kubernetes.Interface
	namespace string // of Liqo

	mu   sync.Mutex
	last map[types.UID]grant
}

// grants returns the entries of the last read or write. It returns nil before the first read. It does not block.
func (r *record) grants() map[types.UID]grant {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// edition is one version of the record: its grants and its resource version. The resource version is "" while no
// record exists.
type edition struct {
	grants  map[types.UID]grant
	version string
}

// read reads the record from the API server. It blocks for at most roundWithin.
func (r *record) read(ctx context.Context) (e edition, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	found, err := r.kube.CoreV1().ConfigMaps(r.namespace).Get(ctx, RecordName, metav1.GetOptions{})
	e.grants = map[types.UID]grant{}
	switch {
	case apierrors.IsNotFound(err):
		return e, nil
	case err != nil:
		return e, fmt.Errorf("read ConfigMap %s/%s, the record of grants: %w", r.namespace, RecordName, err)
	}
	if err := json.Unmarshal([]byte(found.Data[recordKey]), &e.grants); err != nil {
		return e, fmt.Errorf("read ConfigMap %s/%s, the record of grants: %w: delete it; the agent then creates it from the "+
			"slices' status", r.namespace, RecordName, err)
	}
	e.version = found.ResourceVersion
	r.keep(e.grants)
	return e, nil
}

// write replaces the grants in the record. It returns a conflict error if another agent has changed the record since
// this agent read the edition `was`. It blocks for at most roundWithin.
func (r *record) write(ctx context.Context, was edition, grants map[types.UID]grant) error {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	text, err := json.Marshal(grants)
	if err == nil && len(text) > maxRecord {
		err = fmt.Errorf("%d slices need %d bytes, but the record may have only %d", len(grants), len(text), maxRecord)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s, the record of grants: %w", r.namespace, RecordName, err)
	}
	written := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: RecordName, Namespace: r.namespace, ResourceVersion: was.version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": Lease}},
		Data: map[string]string{recordKey: string(text)},
	}
	configMaps := r.kube.CoreV1().ConfigMaps(r.namespace)
	if was.version == "" {
		_, err = configMaps.Create(ctx, written, metav1.CreateOptions{})
	} else {
		_, err = configMaps.Update(ctx, written, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s, the record of grants: %w", r.namespace, RecordName, err)
	}
	r.keep(maps.Clone(grants))
	return nil
}

func (r *record) keep(grants map[types.UID]grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = grants
}
