package microvm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// join is the state of one running Join.
type join struct {
	*Backend
	fleet.Attempt
	spec      backend.NodeSpec
	host      *host
	peering   *corev1.ConfigMap
	requested bool // the host has accepted the request for the machine
	seen      *corev1.Node
}

// Join records the attempt, requests a machine from its host, and finally stamps the Node that the machine registers.
func (b *Backend) Join(ctx context.Context, spec backend.NodeSpec, progress backend.Progress) (backend.Node, error) {
	j := &join{Backend: b, Attempt: spec.Attempt, spec: spec}
	w := waiter{progress: progress, patience: b.config.UnreachableAfter}
	err := backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageResources, Poll: j.peered},
		{Stage: backend.StageResources, Poll: j.grantStep},
		{Stage: backend.StageNode, Poll: j.registered},
		{Stage: backend.StageReady, Poll: j.ready},
		{Stage: backend.StageStamp, Poll: j.stampStep},
	})
	if err != nil {
		return backend.Node{}, fmt.Errorf("join node %s of %s: %w", j.ObjectName(), j.Provider.ID, err)
	}
	return backend.Node{Name: j.seen.Name, UID: string(j.seen.UID)}, nil
}

func (j *join) peered(ctx context.Context) (done bool, _ string, err error) {
	if err := j.spec.Kind(fleet.NodesMachine); err != nil {
		return false, "", err
	}
	if j.host, j.peering, err = j.known(ctx, j.Provider); err != nil {
		return false, "", err
	}
	if j.peering == nil || j.peering.Labels[backend.LabelRefused] != "" {
		return false, "", errorf(backend.ErrNotPeered, "host group %s was not checked by Establish yet", j.Provider.ID)
	}
	return true, "", nil
}

// grantStep reports done when the host has the attempt's machine. The attempt is recorded before the machine is made.
func (j *join) grantStep(ctx context.Context) (bool, string, error) {
	if err := j.ensureRecord(ctx); err != nil {
		return false, "", err
	}
	machines, err := j.machines(ctx, j.host, j.ObjectName())
	if err != nil {
		return false, "", err
	}
	for i, extra := range machines {
		if i > 0 { // the answer to an earlier request was lost
			if err := j.host.remove(ctx, extra.Hostname); err != nil {
				return false, "", err
			}
		}
	}
	if len(machines) > 0 || j.requested {
		return len(machines) > 0, "the host does not list the machine yet", nil
	}
	if refusal, err := j.refusal(ctx, j.host, j.peering); err != nil || refusal != nil {
		return false, "", cmp.Or(err, refusalError(refusal))
	}
	want, err := j.machine(ctx)
	if err == nil {
		err = j.fits(ctx, want)
	}
	if err == nil {
		err = j.host.create(ctx, want)
	}
	j.requested = err == nil
	return false, "the host makes a machine", err
}

// ensureRecord makes the attempt's record. It returns ErrConflict when the name is taken or the record is being
// removed.
func (j *join) ensureRecord(ctx context.Context) error {
	var node corev1.Node
	err := j.local.Get(ctx, client.ObjectKey{Name: j.ObjectName()}, &node)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && !isOf(&node, j.Attempt) {
		return errorf(backend.ErrConflict, "a Node %s exists and does not belong to this attempt: it lacks its labels "+
			"%s and %s", node.Name, fleet.LabelGroup, fleet.LabelMachineProvider)
	}
	record, err := j.record(ctx, attemptName(j.Attempt))
	switch {
	case err != nil:
		return err
	case record == nil:
		booking, err := json.Marshal(j.spec.Booking)
		if err != nil {
			return errorf(backend.ErrInvalid, "the booking cannot be written: %v", err)
		}
		return j.newRecord(ctx, attemptName(j.Attempt), j.Provider, j.tags(j.Attempt),
			map[string]string{backend.AnnotationBooking: string(booking)}, finalizer)
	case !backend.Carries(record.Labels, j.tags(j.Attempt)) || record.DeletionTimestamp != nil:
		return errorf(backend.ErrConflict, "ConfigMap %s/%s is not this attempt's, or is being removed", record.Namespace,
			record.Name)
	}
	return nil
}

// machine returns the machine to request from the host: the shape plus the overhead, in whole CPUs.
func (j *join) machine(ctx context.Context) (machine, error) {
	size := func(name corev1.ResourceName) int64 {
		all := j.spec.Shape[name]
		all.Add(j.host.Overhead[name])
		return all.Value()
	}
	data := struct {
		Name           string
		Labels, Taints []string
	}{Name: j.ObjectName()}
	labels := maps.Clone(j.spec.Labels)
	labels[fleet.LabelMachineProvider] = j.Provider.ID
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		data.Labels = append(data.Labels, key+"="+labels[key])
	}
	for _, taint := range j.spec.Taints {
		data.Taints = append(data.Taints, taint.Key+"="+taint.Value+":"+string(taint.Effect))
	}
	var userData strings.Builder
	if j.host.userData.Execute(&userData, data) != nil {
		return machine{}, errorf(backend.ErrInvalid, "userData is a Go template that cannot be executed")
	}
	tag, err := j.tag(ctx)
	return machine{CPUs: size(corev1.ResourceCPU), RAM: size(corev1.ResourceMemory), Tags: []string{tag + j.ObjectName()},
		UserData: userData.String()}, err
}

func (j *join) fits(ctx context.Context, want machine) error {
	group, err := j.host.group(ctx, maxAnswer)
	if err != nil || group == nil {
		return err
	}
	if group.CPUs > 0 && group.CPUs < want.CPUs || group.RAM > 0 && group.RAM < want.RAM {
		return errorf(backend.ErrShort, "a machine of host group %s has at most %d CPUs and %d bytes; asked: %d and %d",
			group.Name, group.CPUs, group.RAM, want.CPUs, want.RAM)
	}
	return nil
}

// registered reports done when the machine's kubelet has registered the Node and the Node carries the attempt's
// annotations.
func (j *join) registered(ctx context.Context) (bool, string, error) {
	node, err := j.readNode(ctx)
	if err != nil || node == nil {
		return false, fmt.Sprintf("the machine has not registered Node %s yet", j.ObjectName()), err
	}
	return true, "", j.annotateAttempt(ctx, node, j.Attempt, j.spec.Price())
}

// annotateAttempt writes the attempt, and further annotations, into the Node's annotations.
func (b *Backend) annotateAttempt(ctx context.Context, node *corev1.Node, a fleet.Attempt,
	more map[string]string) error {
	tags := b.tags(a)
	maps.Copy(tags, more)
	if backend.Carries(node.Annotations, tags) {
		return nil
	}
	annotations := map[string]any{}
	for key, value := range tags {
		annotations[key] = value
	}
	return b.annotate(ctx, node, annotations, nil)
}

// readNode reads the Node. It returns ErrConflict when the record is being removed, or another Node has taken the name.
func (j *join) readNode(ctx context.Context) (*corev1.Node, error) {
	if err := j.ensureRecord(ctx); err != nil {
		return nil, err
	}
	return j.node(ctx, j.Attempt)
}

func (j *join) ready(ctx context.Context) (done bool, _ string, err error) {
	j.seen, err = j.readNode(ctx)
	if err != nil || j.seen == nil {
		return false, "the Node was deleted and is expected back", err
	}
	lacks := nodes.Unfinished(j.seen, j.spec)
	return lacks == "", lacks, nil
}

// stampStep marks the record and, as the last step, writes the instance id into the Node. CA counts the Node from then
// on.
func (j *join) stampStep(ctx context.Context) (bool, string, error) {
	for { // the search is repeated after the mark: if two attempts mark concurrently, each finds the other
		record, err := j.attemptRecord(ctx, j.Attempt)
		if err != nil || record == nil || record.DeletionTimestamp != nil {
			return false, "", cmp.Or(err, errorf(backend.ErrConflict,
				"the record of %s was removed by another program or person", j.ObjectName()))
		}
		if waits, err := j.otherAttempt(ctx); err != nil || waits != "" {
			return false, waits, err
		}
		if record.Annotations[backend.AnnotationStamp] == j.InstanceID() {
			break
		}
		if err := j.annotate(ctx, record, map[string]any{backend.AnnotationStamp: j.InstanceID()}, nil); err != nil {
			return false, "", fmt.Errorf("mark: %w", err)
		}
	}
	node, err := j.node(ctx, j.Attempt)
	if err != nil || node == nil {
		return false, "the Node was deleted and is expected back", err
	}
	j.seen = node
	err = j.stamp(ctx, node, j.InstanceID())
	return err == nil, "", err
}

// stamp writes the instance id into a Node that has none. The API server allows a providerID to be set once, and
// refuses the change on a Node that was replaced since it was read.
func (b *Backend) stamp(ctx context.Context, node *corev1.Node, id string) error {
	switch node.Spec.ProviderID {
	case id:
		return nil
	case "":
	default:
		return errorf(backend.ErrConflict,
			"somebody has set providerID %q on Node %s: is a cloud controller manager at work?",
			node.Spec.ProviderID, node.Name)
	}
	err := nodes.MergePatch(ctx, b.local, node, map[string]any{"metadata": map[string]any{"uid": node.UID},
		"spec": map[string]any{"providerID": id}})
	if apierrors.IsInvalid(err) {
		return errorf(backend.ErrConflict, "somebody has set the providerID of Node %s", node.Name)
	}
	return err
}

// otherAttempt names another attempt of the instance for which the stamp must wait, or returns "". If another attempt
// is stamped, marked and not being removed, its Node is the instance's node, and otherAttempt returns ErrConflict.
func (j *join) otherAttempt(ctx context.Context) (waits string, err error) {
	siblings := j.ours()
	siblings[backend.LabelInstance] = j.Instance
	records, err := j.records(ctx, siblings)
	if err != nil {
		return "", err
	}
	alive := map[string]bool{} // the marked attempts, by Node name
	for i := range records {
		name, ok := attemptIn(records[i].Name)
		if ok && name != j.ObjectName() && records[i].Annotations[backend.AnnotationStamp] == j.InstanceID() {
			waits, alive[name] = fmt.Sprintf("attempt %s is still marked", name), records[i].DeletionTimestamp == nil
		}
	}
	carriers, err := j.carriers(ctx, j.Attempt)
	for _, node := range carriers {
		if alive[node.Name] && node.DeletionTimestamp == nil {
			return "", errorf(backend.ErrConflict, "Node %s is the instance %s: it is stamped and not lost", node.Name,
				j.InstanceID())
		}
		waits = fmt.Sprintf("Node %s of another attempt still carries the instance id", node.Name)
	}
	return waits, err
}

// carriers lists the other Nodes of the group that carry the attempt's instance id.
func (b *Backend) carriers(ctx context.Context, a fleet.Attempt) (carriers []corev1.Node, err error) {
	var all corev1.NodeList
	if err := b.local.List(ctx, &all, client.MatchingLabels{fleet.LabelGroup: a.Group}); err != nil {
		return nil, fmt.Errorf("list nodes of group %s: %w", a.Group, err)
	}
	for _, node := range all.Items {
		if node.Name != a.ObjectName() && node.Spec.ProviderID == a.InstanceID() {
			carriers = append(carriers, node)
		}
	}
	return carriers, nil
}
