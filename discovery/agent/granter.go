package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// granter answers the slices of Class, in the order in which they were created. In each round it reads the record of
// grants from the API server, and the slices from a watch. It does not read all slices from the API server, because
// large slices would delay the answers. The watch may be late. Therefore a grant counts until the API server no
// longer has the slice of the grant, so that no capacity is granted twice.
type granter struct {
	objects dynamic.Interface
	record  *record
	config  func() Config
	world   func() World // the state of the cluster according to the watch
	log     *slog.Logger
	metrics *Metrics

	failures map[types.UID]failure // the failed attempts to write the answer of a slice
	denied   map[types.UID]bool    // slices that this agent has denied although the record has an entry for them
	forged   map[types.UID]bool    // slices that were reported as forged
}

// failure holds the number of failed attempts to answer a slice, and the time of the next attempt.
type failure struct {
	times int
	next  time.Time
}

// roundWithin bounds the duration of one request. retryWithin bounds the time between two attempts to answer a slice.
const (
	roundWithin = 10 * time.Second
	retryWithin = time.Minute
)

func newGranter(g granter) *granter {
	g.failures, g.denied, g.forged = map[types.UID]failure{}, map[types.UID]bool{}, map[types.UID]bool{}
	return &g
}

// run answers slices until ctx ends. The channel waits delivers a value when a slice may wait for an answer.
func (g *granter) run(ctx context.Context, waits <-chan struct{}) {
	var logged logonce.LastError
	for ctx.Err() == nil {
		again, err := g.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if logged.IsNew(err) {
			g.log.Warn("ResourceSlices cannot be answered", "error", err)
		}
		if err != nil {
			wait.For(ctx, jitter(writeEvery))
		}
		g.waitForSlices(ctx, again, waits)
	}
}

// waitForSlices blocks until one of three events: a slice may wait for an answer, the duration `again` has passed, or
// ctx ends. If again is 0, only the other two events end the wait. A slice that waits for an answer ends the wait
// early, so that it is not delayed by the retry of another slice.
func (g *granter) waitForSlices(ctx context.Context, again time.Duration, waits <-chan struct{}) {
	var due <-chan time.Time
	if again > 0 {
		timer := time.NewTimer(jitter(again))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-waits:
	case <-due:
	case <-ctx.Done():
	}
}

// answer is a decision about a slice that is not written yet.
type answer struct {
	index  int // index of the slice in World.Slices
	tenant Tenant
	Decision
}

// round answers all waiting slices: it decides about them, writes all grants into the record with one request, and
// writes the answers. If an answer cannot be written, a later round tries again; the other slices do not wait for
// this. The result `again` is the time until the next round. If it is 0, only a change of a slice starts a round.
func (g *granter) round(ctx context.Context) (again time.Duration, err error) {
	seen, err := g.snapshot(ctx)
	if err != nil {
		return writeEvery, err
	}
	config := g.config()
	seen.world.Tolerations = config.NodeTolerations
	seen.world.GrowsTo, seen.world.GrowsNode = config.GrowsTo, config.GrowsNode
	answers, again := g.decide(config, seen.world, seen.tenants)
	switch err := g.book(ctx, seen, answers); {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another agent has written the record
		return writeEvery, nil
	case err != nil:
		return writeEvery, err
	}
	later, err := g.answer(ctx, seen, answers, config)
	return earlier(again, later), err
}

// earlier returns the shorter of two durations. A duration of 0 means that none is set.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// answer writes the answers into the slices. The result `again` is the time until an answer that could not be written
// is tried again, or 0 if all were written.
func (g *granter) answer(ctx context.Context, seen snapshot, answers []answer,
	config Config) (again time.Duration, err error) {
	var failed []error
	for _, a := range answers {
		s := seen.world.Slices[a.index]
		err := g.write(ctx, s, a.Decision, config)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		again = earlier(again, g.recordWrite(s, a, err))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("answer slice %s/%s: %w", s.Namespace, s.Name, err))
		}
		if errors.Is(err, context.DeadlineExceeded) {
			break // the API server is not responding
		}
	}
	return again, errors.Join(failed...)
}

// book writes the grants among the answers into the record, unless the record already has them.
func (g *granter) book(ctx context.Context, seen snapshot, answers []answer) error {
	for _, a := range answers {
		if s := seen.world.Slices[a.index]; a.Granted {
			seen.grants[s.UID] = grant{Namespace: s.Namespace, Name: s.Name, Resources: positive(s.Spec.Resources)}
		}
	}
	if seen.record.version != "" && equality.Semantic.DeepEqual(seen.grants, seen.record.grants) {
		return nil
	}
	return g.record.write(ctx, seen.record, seen.grants)
}

// recordWrite records the result err of an attempt to write an answer. It returns the time until the next attempt, or
// 0 if no other attempt is needed.
func (g *granter) recordWrite(s Slice, a answer, err error) (later time.Duration) {
	switch {
	case err == nil:
		delete(g.failures, s.UID)
		if s.Booked != nil && !a.Granted {
			g.denied[s.UID] = true
		}
		g.metrics.answered(a.Decision)
		g.log.Info("ResourceSlice answered", "slice", s.Name, "consumer", a.tenant.ClusterID, "granted", a.Granted,
			"reason", a.Reason, "message", a.Message, "asks", renderAmounts(s.Spec.Resources))
		return 0
	case apierrors.IsNotFound(err):
		return 0
	case apierrors.IsConflict(err): // the slice has changed
		return writeEvery
	}
	f := g.failures[s.UID]
	later = min(writeEvery<<min(f.times, 10), retryWithin)
	g.failures[s.UID] = failure{f.times + 1, time.Now().Add(later)}
	return later
}

// reportForged logs each slice with a forged grant once, see Slice.forged.
func (g *granter) reportForged(all []Slice) {
	for _, s := range all {
		if s.forged() && !g.forged[s.UID] {
			g.forged[s.UID] = true
			g.log.Warn("the status of a ResourceSlice shows a grant that no agent made: its consumer, or a user of this "+
				"cluster, wrote it. The slice counts as not granted; apply the policies of provider-access, which deny that write",
				"slice", s.Name, "namespace", s.Namespace, "consumer", s.Owner)
		}
	}
}

// decide decides about the waiting slices, the oldest first. Each decision takes into account the grants that were
// decided before it. decide omits a slice whose answer failed until the time of the next attempt. The result `again`
// is the time until the first such attempt, or 0.
func (g *granter) decide(config Config, world World, tenants map[string]Tenant) (answers []answer,
	again time.Duration) {
	for _, n := range order(world.Slices) {
		s := &world.Slices[n]
		if left := time.Until(g.failures[s.UID].next); left > 0 {
			again = earlier(again, left)
			continue
		}
		booked := s.Booked
		s.Booked = nil // the slice may use the capacity that the record has for it
		a := answer{n, tenants[s.Namespace], config.Judge(world, *s, tenants[s.Namespace])}
		if s.Booked = booked; a.Granted {
			s.Booked = s.Spec.Resources.DeepCopy()
		}
		answers = append(answers, a)
	}
	return answers, again
}

// order returns the indexes of the slices that wait for an answer, the oldest slice first.
func order(all []Slice) (order []int) {
	for n, s := range all {
		if s.Waits() {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := all[a], all[b]
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Name, y.Name))
	})
	return order
}

// slice reads a slice from the API server. It returns NotFound when a slice with this name and UID does not exist.
func (g *granter) slice(ctx context.Context, namespace, name string, uid types.UID) (*unstructured.Unstructured,
	error) {
	all := g.objects.Resource(sliceResource).Namespace(namespace)
	found, err := lister(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return all.List(ctx, o)
	}).one(ctx, sliceResource.GroupResource(), name, uid)
	if err != nil {
		return nil, err
	}
	return found.(*unstructured.Unstructured), nil
}

// write writes the decision into the status of the slice. It returns a conflict error if the slice has changed since
// the decision. It reads the whole slice again, because judged has only the fields that the decision needs.
func (g *granter) write(ctx context.Context, judged Slice, v Decision, config Config) error {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	object, err := g.slice(ctx, judged.Namespace, judged.Name, judged.UID)
	if err != nil {
		return err
	}
	if object.GetResourceVersion() != judged.ResourceVersion {
		return apierrors.NewConflict(sliceResource.GroupResource(), judged.Name,
			errors.New("the slice has changed since the decision"))
	}
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return err
	}
	if status == nil {
		status = map[string]any{}
	}
	conditions, _ := status["conditions"].([]any)
	value := denied
	if v.Granted {
		value = accepted
		status["resources"], _, _ = unstructured.NestedFieldCopy(object.Object, "spec", "resources")
		nodeLabels := map[string]any{}
		for key, label := range config.NodeLabels {
			nodeLabels[key] = label
		}
		status["nodeLabels"] = nodeLabels
		status["storageClasses"] = classes("storageClassName", config.StorageClasses)
		status["ingressClasses"] = classes("ingressClassName", config.IngressClasses)
		status["loadBalancerClasses"] = classes("loadBalancerClassName", config.LoadBalancerClasses)
	}
	status["conditions"] = append(conditions, runtime.DeepCopyJSONValue(map[string]any{
		"type": conditionResources, "status": value, "reason": v.Reason, "message": v.Message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}))
	object.Object["status"] = status
	_, err = g.objects.Resource(sliceResource).Namespace(judged.Namespace).UpdateStatus(ctx, object,
		metav1.UpdateOptions{})
	return err
}

// classes returns the names in the form in which a slice of Liqo lists classes. The first class is the default.
func classes(key string, names []string) []any {
	out := []any{}
	for n, name := range names {
		out = append(out, map[string]any{key: name, "default": n == 0})
	}
	return out
}
