package liqo

import (
	"context"
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// join contains the state of one running Join.
type join struct {
	*attempt
	spec    backend.NodeSpec
	sliced  bool                           // the last read found a slice
	absent  bool                           // the last read found no virtual node
	virtual *offloadingv1beta1.VirtualNode // as last read
	node    *corev1.Node
	fresh   bool      // the previous stage has just read virtual and node
	soleAt  time.Time // when the last check found no conflicting attempt
	settled bool      // the virtual node is marked, and no conflicting attempt was found since

	several   bool                       // this cluster's Liqo supports several nodes on a provider
	granting  *authv1beta1.ResourceSlice // as last read
	allowedAt time.Time                  // when allow last permitted a virtual node
	network   fleet.NetworkMode          // of the virtual node; gateway means every mode with a network

	starting stopwatch // time without a registered Node
	waiting  stopwatch // time without an answer to the slice
	reminded bool      // Join has made crd-replicator process the slice again
	denied   stopwatch // time since the slice's authentication was denied
}

// diagnoseAfter is the time for which Join waits for another component before it searches for the reason of the
// delay. Most waits are shorter, and the search would load the API server.
const diagnoseAfter = time.Second

// Join makes the attempt's slice, virtual node and Node, or adopts existing ones, and stamps the Node last.
func (b *Backend) Join(ctx context.Context, spec backend.NodeSpec, progress backend.Progress) (backend.Node, error) {
	j := &join{attempt: b.attempt(spec.Attempt), spec: spec}
	w := b.making(ctx, progress)
	changed, stop := b.changes.follow(j.name())
	defer stop()
	w.changed = changed
	if b.changes.watched() {
		w.first, w.longest = watchedFirstPause, watchedLongestPause
	}
	err := backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageSliceAuth, Poll: j.peered},
		{Stage: backend.StageSliceAuth, Poll: j.authenticated},
		{Stage: backend.StageResources, Poll: j.grantStep},
		{Stage: backend.StageVirtualKubelet, Poll: j.virtualNodeStep},
		{Stage: backend.StageNode, Poll: j.registered},
		{Stage: backend.StageReady, Poll: j.ready},
		{Stage: backend.StageStamp, Poll: j.stampStep},
	})
	if err != nil {
		return backend.Node{}, fmt.Errorf("join node %s of %s: %w", spec.Attempt.ObjectName(), spec.Attempt.Provider.ID, err)
	}
	return backend.Node{Name: j.node.Name, UID: string(j.node.UID)}, nil
}

// peered reports done when the peering exists. If the peering does not exist, it returns ErrNotPeered, because
// waiting would not help.
func (j *join) peered(ctx context.Context) (bool, string, error) {
	if err := j.spec.Kind(fleet.NodesVirtual); err != nil {
		return false, "", err
	}
	if err := j.locate(ctx); err != nil {
		return false, "", err
	}
	secrets, err := j.controlPlaneSecrets(ctx)
	if err != nil {
		return false, "", err
	}
	if len(secrets) == 0 {
		return false, "", errorf(backend.ErrNotPeered, "there is no peering with %s: it has to be established first",
			j.Provider.ID)
	}
	return true, "", nil
}

// registered reports done when the virtual kubelet has registered the Node.
func (j *join) registered(ctx context.Context) (bool, string, error) {
	err := j.readNode(ctx)
	if apierrors.IsNotFound(err) {
		j.searchAhead(ctx)
		message := fmt.Sprintf("the virtual kubelet has not registered Node %s yet", j.name())
		if j.starting.longerThan(diagnoseAfter) {
			if trouble := j.kubeletTrouble(ctx); trouble != "" {
				message += ": " + trouble
			}
		}
		return false, message, nil
	}
	j.fresh = err == nil
	return err == nil, "", err
}

// readNode reads the virtual node and its Node, unless the previous stage has just done so. It returns ErrConflict when
// the virtual node is being removed.
func (j *join) readNode(ctx context.Context) error {
	if j.fresh {
		j.fresh = false
		return nil
	}
	var virtual *offloadingv1beta1.VirtualNode
	var parallel errgroup.Group
	parallel.Go(func() (err error) {
		virtual, err = j.virtualNode(ctx)
		return err
	})
	node, missing := j.attempt.node(ctx, j.virtual)
	err := parallel.Wait()
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil || virtual.DeletionTimestamp != nil {
		return errorf(backend.ErrConflict, "VirtualNode %s was removed by another program or person", j.name())
	}
	if missing != nil {
		return missing
	}
	j.virtual, j.node = virtual, node
	return nil
}

// ready reports done when the Node is Ready and has the labels, taints and size of the spec. Kubernetes' own taint
// not-ready may still be on the Node. Liqo up to 1.1 adds labels and taints only after it has registered the Node.
func (j *join) ready(ctx context.Context) (bool, string, error) {
	err := j.readNode(ctx)
	if apierrors.IsNotFound(err) {
		return false, fmt.Sprintf("Node %s was deleted and is expected back", j.name()), nil
	}
	if err != nil {
		return false, "", err
	}
	if lacks := nodes.Incomplete(j.node, j.spec); lacks != "" {
		return false, lacks, nil
	}
	if !j.mine(j.node) {
		return false, fmt.Sprintf("Node %s does not have its annotations yet", j.name()), nil
	}
	j.fresh = true
	return true, "", nil
}
