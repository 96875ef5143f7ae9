// Package leader elects one of several processes as the leader, with a Lease in the cluster.
package leader

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Rest is the time for which a process pauses before it competes for the Lease again, if its work has returned early.
// During the pause another process can become the leader.
const Rest = time.Minute

// Run competes for the Lease until ctx ends, and calls the function work whenever this process has obtained the Lease.
// The context of the call ends when the Lease is lost, at the latest 10 s after its last renewal. Run releases the
// Lease and returns only after work has returned. So the calls of work in two processes do not overlap. If work
// returns before its context ends, Run releases the Lease, and waits for the time Rest before it competes again.
func Run(ctx context.Context, client kubernetes.Interface, namespace, name string, log *slog.Logger,
	work func(ctx context.Context)) {
	host, _ := os.Hostname()
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + rand.Text()},
	}
	working := make(chan struct{}, 1) // full while work runs, so that only one call runs
	led, resigned := false, false     // these change only while working is full
	for ctx.Err() == nil {            // the elector's Run returns when the Lease is lost
		term, resign := context.WithCancel(ctx)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					working <- struct{}{}
					defer func() { <-working }()
					if ctx.Err() == nil { // the Lease may be lost before this callback runs
						led = true
						work(ctx)
						resigned = ctx.Err() == nil
						resign()
					}
				},
				OnStoppedLeading: func() { log.Debug("another process holds the Lease", "lease", name) },
			},
		})
		if err != nil { // cannot happen with the durations above
			resign()
			log.Error("leader election failed", "lease", name, "error", err)
			return
		}
		elector.Run(term)
		resign()
		working <- struct{}{} // waits for work; a callback that runs later finds its context canceled
		if led {
			release(ctx, lock)
		}
		left := resigned
		led, resigned = false, false
		<-working
		if left {
			wait.For(ctx, Rest)
		}
	}
}

// releaseWithin is the maximum duration of the release. A Lease that is not released expires after 15 s.
const releaseWithin = 3 * time.Second

// release releases the Lease if this process still holds it.
func release(ctx context.Context, lock *resourcelock.LeaseLock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	held, _, err := lock.Get(ctx)
	if err != nil || held.HolderIdentity != lock.Identity() {
		return
	}
	now := metav1.Now()
	_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		LeaderTransitions: held.LeaderTransitions}) // if this fails, the Lease expires
}
