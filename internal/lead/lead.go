// Package lead lets one process of several work, by a Lease in the cluster.
package lead

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Run calls work while this process holds the Lease, until ctx ends: work's own context ends when the Lease is lost,
// 10 s after its last renewal at the latest. It returns when work has.
func Run(ctx context.Context, client kubernetes.Interface, namespace, name string, log *slog.Logger,
	work func(ctx context.Context)) {
	host, _ := os.Hostname()
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + rand.Text()},
	}
	var working sync.Mutex // one call of work at a time
	for ctx.Err() == nil { // the elector's Run returns when the Lease is lost
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			ReleaseOnCancel: true, Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					working.Lock()
					defer working.Unlock()
					if ctx.Err() == nil { // over before it has begun
						work(ctx)
					}
				},
				OnStoppedLeading: func() { log.Debug("another process holds the Lease", "lease", name) },
			},
		})
		if err != nil { // the durations above
			log.Error("leader election failed", "lease", name, "error", err)
			return
		}
		elector.Run(ctx)
	}
	working.Lock()
	defer working.Unlock()
}
