package keep

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// containers is what the stand-in kubelet runs for one pod: a process when it is a virtual kubelet, else nothing.
type containers struct {
	uid      string
	ip       string
	process  *proc.Process
	port     int
	restarts int32
}

const virtualKubelet = "virtual-kubelet"

// restartPause is how long a virtual kubelet that ended by itself stays away, and the patience with one that is asked
// to.
const (
	restartPause = time.Second
	stopPatience = 5 * time.Second
)

// ensure starts what the pod needs and does not have. A process that ended by itself is started again after a pause.
func (k *kubelet) ensure(key string, pod *corev1.Pod) (*containers, error) {
	k.mu.Lock()
	ran := k.running[key]
	k.mu.Unlock()
	if ran != nil && ran.uid != string(pod.UID) { // the same name again
		k.end(key)
		ran = nil
	}
	container := virtualKubeletOf(pod)
	switch {
	case ran == nil:
		ran = &containers{uid: string(pod.UID), ip: k.nextIP(container != nil)}
	case container != nil && ended(ran.process):
		ran.restarts++
	default:
		return ran, nil
	}
	if container != nil {
		if err := k.startVirtualKubelet(key, pod, container, ran); err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	k.running[key] = ran
	k.mu.Unlock()
	return ran, nil
}

func (k *kubelet) startVirtualKubelet(key string, pod *corev1.Pod, container *corev1.Container,
	ran *containers) (err error) {
	if ran.port == 0 {
		if ran.port, err = k.takePort(); err != nil {
			return err
		}
	}
	env := environment(pod, container, ran.ip)
	args := make([]string, 0, len(container.Args)+2)
	for _, a := range container.Args {
		args = append(args, strings.ReplaceAll(a, "$(POD_IP)", ran.ip))
	}
	args = append(args, "--listen-port="+strconv.Itoa(ran.port), "--home-kubeconfig="+k.kubeconfig)
	node := env["VIRTUALNODE_NAME"]
	if ran.process, err = k.start("vk-"+node, k.liqo(virtualKubelet), args, append(pairs(env),
		"KUBECONFIG="+k.kubeconfig)); err != nil {
		return err
	}
	k.log("virtual kubelet of node %s of %s started, pid %d, restarts %d", node, k.name, ran.process.Pid(), ran.restarts)
	process := ran.process
	go func() {
		<-process.Done()
		k.queue.AddAfter(key, restartPause)
	}()
	return nil
}

// end ends what runs for a pod, and returns once it has ended.
func (k *kubelet) end(key string) {
	k.mu.Lock()
	ran := k.running[key]
	delete(k.running, key)
	k.mu.Unlock()
	if ran == nil || ran.process == nil {
		return
	}
	_ = ran.process.Stop(stopPatience)
	k.freePort(ran.port)
	k.log("%s stopped", ran.process.Name)
}

func ended(p *proc.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// virtualKubeletOf is the pod's container that is a virtual kubelet, nil when there is none.
func virtualKubeletOf(pod *corev1.Pod) *corev1.Container {
	for i, c := range pod.Spec.Containers {
		if len(c.Command) > 0 && path.Base(c.Command[0]) == virtualKubelet {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// environment is the container's, with the fields of the pod that Liqo asks for.
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

func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// nextIP is a pod's address: one that nobody has, or loopback for a process, which listens there.
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
