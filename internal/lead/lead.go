// Package lead lets one process of several work, by a Lease in the cluster.
package lead

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

// Rest is how long a process whose work has returned by itself leaves the lead to other processes.
const Rest = time.Minute

// Run calls work while this process holds the Lease, until ctx ends: work's own context ends when the Lease is lost,
// 10 s after its last renewal at the latest. It returns when work has, and gives the Lease back only then: what work
// does when it is to end must not meet what the next process begins with. Work that returns by itself gives the Lease
// back, too, and this process does not compete for it for a minute.
func Run(ctx context.Context, client kubernetes.Interface, namespace, name string, log *slog.Logger,
	work func(ctx context.Context)) {
	host, _ := os.Hostname()
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + rand.Text()},
	}
	working := make(chan struct{}, 1) // full during a call of work: one at a time
	led, resigned := false, false     // change only while it is full
	for ctx.Err() == nil {            // the elector's Run returns when the Lease is lost
		term, resign := context.WithCancel(ctx)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					working <- struct{}{}
					defer func() { <-working }()
					if ctx.Err() == nil { // over before it has begun
						led = true
						work(ctx)
						resigned = ctx.Err() == nil
						resign()
					}
				},
				OnStoppedLeading: func() { log.Debug("another process holds the Lease", "lease", name) },
			},
		})
		if err != nil { // the durations above
			resign()
			log.Error("leader election failed", "lease", name, "error", err)
			return
		}
		elector.Run(term)
		resign()
		working <- struct{}{} // who comes later finds its context at its end
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

// releaseWithin bounds giving the Lease back, which otherwise runs out.
const releaseWithin = 3 * time.Second

// release gives the Lease back, if it is still ours.
func release(ctx context.Context, lock *resourcelock.LeaseLock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	held, _, err := lock.Get(ctx)
	if err != nil || held.HolderIdentity != lock.Identity() {
		return
	}
	now := metav1.Now()
	_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		LeaderTransitions: held.LeaderTransitions}) // or it runs out
}
