package keep

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// containers holds the processes that the lab's kubelet runs for one pod. Only pods of virtual kubelets and of
// gateways have processes.
type containers struct {
	uid       string
	admitted  time.Time
	ip        string
	processes map[string]*proc.Process // the newest process of each container
	restarts  map[string]int32         // by container
	port      int                      // of a virtual kubelet
	sandbox   *sandbox                 // of a gateway
}

const virtualKubelet = "virtual-kubelet"

// restartPause is the pause before the lab restarts a process that has ended. stopPatience is the time in which a
// process must end after SIGTERM.
const (
	restartPause = time.Second
	stopPatience = 5 * time.Second
)

// ensure starts each process of the pod that does not run. Until the time PodStart has passed, it does nothing and
// returns nil. When a process has ended, ensure waits for restartPause before it restarts the process.
func (k *kubelet) ensure(ctx context.Context, key string, pod *corev1.Pod) (*containers, error) {
	k.mu.Lock()
	ran := k.running[key]
	k.mu.Unlock()
	if ran != nil && ran.uid != string(pod.UID) { // another pod with the same name
		k.end(key)
		ran = nil
	}
	if ran == nil {
		var err error
		if ran, err = k.admit(ctx, pod); err != nil {
			return nil, err
		}
		k.mu.Lock()
		k.running[key] = ran
		k.mu.Unlock()
	}
	if left := time.Until(ran.admitted.Add(k.PodStart)); left > 0 {
		k.queue.AddAfter(key, left)
		return nil, nil
	}
	for _, container := range k.real(pod) {
		if err := k.keepRunning(key, pod, container, ran); err != nil {
			return nil, err
		}
	}
	return ran, nil
}

// real returns the pod's containers that run as processes.
func (k *kubelet) real(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for i, c := range pod.Spec.Containers {
		inGateway := k.Gateways && isGateway(pod) && (c.Name == wireGuardContainer || c.Name == gatewayContainer)
		if inGateway || isVirtualKubelet(c) {
			out = append(out, &pod.Spec.Containers[i])
		}
	}
	return out
}

func isVirtualKubelet(c corev1.Container) bool {
	return len(c.Command) > 0 && path.Base(c.Command[0]) == virtualKubelet
}

// admit creates the state that the pod's containers share.
func (k *kubelet) admit(ctx context.Context, pod *corev1.Pod) (ran *containers, err error) {
	ran = &containers{uid: string(pod.UID), admitted: time.Now(),
		processes: map[string]*proc.Process{}, restarts: map[string]int32{}}
	ran.ip = k.nextIP(slices.ContainsFunc(pod.Spec.Containers, isVirtualKubelet))
	if k.Gateways && isGateway(pod) {
		ran.sandbox, err = k.newSandbox(ctx, pod)
	}
	return ran, err
}

func (k *kubelet) keepRunning(key string, pod *corev1.Pod, container *corev1.Container, ran *containers) (err error) {
	process := ran.processes[container.Name]
	switch {
	case process == nil:
	case ended(process):
		ran.restarts[container.Name]++
	default:
		return nil
	}
	env := environment(pod, container, ran.ip)
	args := expandArgs(container.Args, env)
	inside := append(pairs(env), "KUBECONFIG="+k.kubeconfig)
	if ran.sandbox != nil {
		process, err = k.startGatewayContainer(pod, container, ran.sandbox, args, inside)
	} else {
		process, err = k.startVirtualKubelet(env["VIRTUALNODE_NAME"], ran, args, inside)
	}
	if err != nil {
		return err
	}
	ran.processes[container.Name] = process
	k.log("%s started, pid %d, restarts %d", process.Name, process.Pid(), ran.restarts[container.Name])
	go func() {
		<-process.Done()
		k.queue.AddAfter(key, restartPause)
	}()
	return nil
}

func (k *kubelet) startVirtualKubelet(node string, ran *containers, args, env []string) (_ *proc.Process, err error) {
	if ran.port == 0 {
		if ran.port, err = k.takePort(); err != nil {
			return nil, err
		}
	}
	args = append(args, "--listen-port="+strconv.Itoa(ran.port), "--home-kubeconfig="+k.kubeconfig)
	return k.start("vk-"+node, k.liqo(virtualKubelet), args, env)
}

// end ends the processes of a pod, and returns when they have ended.
func (k *kubelet) end(key string) {
	k.mu.Lock()
	ran := k.running[key]
	delete(k.running, key)
	k.mu.Unlock()
	if ran == nil {
		return
	}
	var stopping sync.WaitGroup
	for _, p := range ran.processes {
		stopping.Go(func() {
			_ = p.Stop(stopPatience)
			k.log("%s stopped", p.Name)
		})
	}
	stopping.Wait()
	if ran.port != 0 {
		k.freePort(ran.port)
	}
	if ran.sandbox != nil {
		ran.sandbox.close()
	}
}

func ended(p *proc.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// environment returns the container's environment, including the variables whose value is a field of the pod.
func environment(pod *corev1.Pod, container *corev1.Container, ip string) map[string]string {
	fields := map[string]string{
		"status.podIP": ip, "metadata.name": pod.Name, "metadata.namespace": pod.Namespace,
		"spec.nodeName": pod.Spec.NodeName,
	}
	out := map[string]string{}
	for _, e := range container.Env {
		out[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			out[e.Name] = fields[e.ValueFrom.FieldRef.FieldPath]
		}
	}
	return out
}

// expandArgs replaces variables in the container's arguments by their values in the environment env.
func expandArgs(args []string, env map[string]string) []string {
	out := make([]string, 0, len(args)+2)
	for _, a := range args {
		for name, value := range env {
			a = strings.ReplaceAll(a, "$("+name+")", value)
		}
		out = append(out, a)
	}
	return out
}

func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// nextIP returns an unused address for a pod. For a pod with a process it returns loopback, because the process
// listens there.
func (k *kubelet) nextIP(process bool) string {
	if process {
		return "127.0.0.1"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastIP++
	return fmt.Sprintf("10.%d.%d.%d", 100+k.index, k.lastIP/250, k.lastIP%250+1)
}

func (l *lab) takePort() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, last := l.kubeletPorts()
	for port := first; port <= last; port++ {
		if !l.kubeletPort[port] {
			l.kubeletPort[port] = true
			return port, nil
		}
	}
	return 0, errors.New("find port for a virtual kubelet: all are taken")
}

func (l *lab) freePort(port int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kubeletPort, port)
}
