package keep

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// kubelet replaces two things in a cluster: the kubelet of the plain node, and the network to the pods of this node.
// The pod of a virtual kubelet runs as a process. In a lab with gateways, the pod of a gateway runs as processes,
// too. Every other pod is only reported as running. Deleted pods are removed immediately.
type kubelet struct {
	*cluster
	log      func(string, ...any)
	queue    workqueue.TypedRateLimitingInterface[string]
	pods     listers.PodLister
	services listers.ServiceLister

	mu           sync.Mutex
	running      map[string]*containers // by namespace/name of the pod
	lastIP       int
	lastBalancer int
}

// balancePeriod is the interval at which the lab searches for Services without an address. The interval can be short,
// because the Services are in memory.
const balancePeriod = 200 * time.Millisecond

// kubeletWorkers is the number of a cluster's pods that the lab handles concurrently. One is not enough, because the
// end of a virtual kubelet takes a while.
const kubeletWorkers = 4

// runKubelet runs the replacement of the kubelet of the cluster's plain node until ctx ends.
func (c *cluster) runKubelet(ctx context.Context, log func(string, ...any)) {
	factory := informers.NewSharedInformerFactoryWithOptions(c.kube, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", PlainNode).String()
		}))
	pods := factory.Core().V1().Pods()
	// The factory above cannot watch Services, because its field selector is valid only for pods.
	all := informers.NewSharedInformerFactory(c.kube, 0)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 5*time.Second)
	k := &kubelet{
		cluster: c, log: log, pods: pods.Lister(), services: all.Core().V1().Services().Lister(),
		running: map[string]*containers{},
		queue:   workqueue.NewTypedRateLimitingQueue(limiter),
	}
	changed := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			k.queue.Add(key)
		}
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
	}); err != nil {
		log("watch pods of %s: %v", c.name, err)
		return
	}
	for _, f := range []informers.SharedInformerFactory{factory, all} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		defer f.Shutdown()
	}
	c.lab.mu.Lock()
	c.kubelets = append(c.kubelets, k)
	c.lab.mu.Unlock()
	var workers sync.WaitGroup
	workers.Go(func() { wait.UntilWithContext(ctx, k.balance, balancePeriod) })
	for range kubeletWorkers {
		workers.Go(func() { wait.UntilWithContext(ctx, k.work, time.Second) })
	}
	<-ctx.Done()
	k.queue.ShutDown()
	workers.Wait()
}

func (k *kubelet) work(ctx context.Context) {
	for {
		key, quit := k.queue.Get()
		if quit {
			return
		}
		if err := k.sync(ctx, key); err != nil {
			k.log("pod %s of %s: %v", key, k.name, err)
			k.queue.AddRateLimited(key)
		} else {
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

// sync handles one pod: it starts or ends the pod's processes, and reports the pod's status.
func (k *kubelet) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	pod, err := k.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		k.end(key)
		return nil
	}
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		k.end(key)
		err := k.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or replaced by another pod
			return nil
		}
		return err
	}
	if finished(pod) {
		return nil
	}
	ran, err := k.ensure(ctx, key, pod)
	if err != nil || ran == nil {
		return err
	}
	return k.report(ctx, pod, ran)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// report writes a status that shows the pod as running and ready, unless the pod already has this status.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, ran *containers) error {
	if pod.Status.Phase == corev1.PodRunning && maps.Equal(restarts(pod), ran.restarts) {
		return nil
	}
	now := metav1.Now()
	changed := pod.DeepCopy()
	s := &changed.Status
	s.Phase, s.StartTime = corev1.PodRunning, &now
	s.PodIP, s.PodIPs = ran.ip, []corev1.PodIP{{IP: ran.ip}}
	s.Conditions, s.ContainerStatuses = nil, nil
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
		corev1.PodScheduled} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue,
			LastTransitionTime: now})
	}
	started := true
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &started, RestartCount: ran.restarts[c.Name],
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	_, err := k.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // an event about the other change will follow
	}
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// restarts returns the number of restarts of each container that was started again.
func restarts(pod *corev1.Pod) map[string]int32 {
	out := map[string]int32{}
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			out[c.Name] = c.RestartCount
		}
	}
	return out
}
