package boundpod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
)

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

func refusal(message string, at int64) corev1.Event {
	return corev1.Event{Reason: "FailedReflection", Message: message, LastTimestamp: metav1.Unix(at, 0),
		Source: corev1.EventSource{Component: "liqo-pod-reflection"}}
}

// The e2e suite "pods" recorded the messages in this test from a real provider.
func TestReasonOfABoundPodThatDoesNotRun(t *testing.T) {
	const quota = `Error reflecting object to cluster "provider1": admission webhook "shadowpod.validate.liqo.io" ` +
		`denied the request: peering cpu quota usage exceeded - free 0 / requested 100m`
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, c := range map[string]struct {
		status  corev1.PodStatus
		events  []corev1.Event
		verdict boundpod.Verdict
		says    string
	}{
		"runs": {status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", Ready: true, State: running, RestartCount: 3, LastTerminationState: ended(1, "Error")}}}},
		"its probe has not succeeded yet": {status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: running}}}},
		"ended": {status: corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: ended(3, "Error")}}}},
		"no quota": {corev1.PodStatus{Phase: corev1.PodPending}, []corev1.Event{refusal("older", 1), refusal(quota, 2)},
			boundpod.HoldsNoQuota, "free 0 / requested 100m"},
		"refused by a policy": {corev1.PodStatus{Phase: corev1.PodPending},
			[]corev1.Event{refusal("Pod Security baseline: no container of a consumer is privileged", 1)},
			boundpod.RefusedByProvider, "Pod Security baseline"},
		"no word of the provider": {status: corev1.PodStatus{Phase: corev1.PodPending},
			verdict: boundpod.RefusedByProvider, says: "no Event of this pod has the reason"},
		"no room there": {status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient cpu."}}},
			verdict: boundpod.PendingOnProvider, says: "Insufficient cpu"},
		"no image": {status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			waiting("ImagePullBackOff", "Back-off pulling image x")}},
			verdict: boundpod.NotStarting, says: "container main waits: ImagePullBackOff: Back-off pulling image x"},
		"an init container": {status: corev1.PodStatus{Phase: corev1.PodPending,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: ended(0, "Completed")},
				waiting("ErrImagePull", "")},
			ContainerStatuses: []corev1.ContainerStatus{waiting("PodInitializing", "")}},
			verdict: boundpod.NotStarting, says: "ErrImagePull"},
		"crashes": {status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", RestartCount: 4, LastTerminationState: ended(137, "OOMKilled"),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}},
			verdict: boundpod.Restarting, says: "CrashLoopBackOff; restarts 4, the last run ended: exit code 137, OOMKilled"},
		"has crashed just now": {status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: ended(3, "Error")}}},
			verdict: boundpod.Restarting, says: "exit code 3"},
		"restarts before its probe": {status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: running, RestartCount: 1,
				LastTerminationState: ended(1, "Error")}}}, verdict: boundpod.Restarting, says: "has started again"},
		"tolerates everything": {status: corev1.PodStatus{Phase: corev1.PodPending, Reason: "OffloadingBackOff"},
			verdict: boundpod.NotOffloaded, says: "Liqo offloads no pods of namespace shop"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Status: c.status}
			verdict, why := boundpod.Of(pod, c.events)
			require.Equal(t, c.verdict, verdict, why)
			require.Contains(t, why, c.says)
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			if c.verdict != boundpod.NotOffloaded {
				verdict, _ = boundpod.Of(pod, c.events)
				require.Empty(t, verdict, "a pod that is being deleted")
			}
		})
	}
}

func TestLastEventOfTheProviderIsFound(t *testing.T) {
	remote := refusal("0/1 nodes are available", 5)
	remote.Reason, remote.Source.Component = "FailedScheduling", "default-scheduler (remote)"
	require.Equal(t, "FailedScheduling: 0/1 nodes are available",
		boundpod.LastRemote([]corev1.Event{refusal("x", 9), remote}))
	require.Empty(t, boundpod.LastRemote([]corev1.Event{refusal("x", 9)}))
}
