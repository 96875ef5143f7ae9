package liqo_test

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// shrink stops Liqo's class controller on the provider, which grants every amount. Instead, the test grants each
// slice half a CPU.
func (l *lab) shrink(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
	resume, err := l.stall(ctx, p)
	if err != nil {
		return resume, err
	}
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	finish := sync.OnceValue(func() error {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	go func() {
		done <- poll(answering, func(ctx context.Context) (bool, error) { return false, l.clusters[p.ID].grantLittle(ctx) })
	}()
	return func(ctx context.Context) error { return errors.Join(finish(), resume(ctx)) }, nil
}

func (c *cluster) grantLittle(ctx context.Context) error {
	slices := c.any.Resource(authentication("resourceslices")).Namespace("liqo-tenant-" + consumer)
	list, err := slices.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	for _, slice := range list.Items {
		_, err := slices.Patch(ctx, slice.GetName(), types.MergePatchType, []byte(`{"status":{"resources":{"cpu":"500m"},"conditions":[
			{"type":"Authentication","status":"Accepted","lastTransitionTime":"`+now+`"},
			{"type":"Resources","status":"Accepted","lastTransitionTime":"`+now+`"}]}}`), metav1.PatchOptions{}, "status")
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
