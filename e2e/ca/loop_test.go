package ca_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// TestLoop checks that the loop of this package behaves like Cluster Autoscaler, with a provider that creates plain
// Node objects. For a pending pod it requests one node, and it removes the node after the pod is gone.
func TestLoop(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Kubernetes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	binary, err := ca.Build(ctx, t.TempDir())
	require.NoError(t, err)
	l := lab.ForTest(ctx, t, lab.Options{Providers: 1})
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(lab.Consumer))
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	protos.RegisterCloudProviderServer(server, &plain{kube: kube, nodes: map[string]bool{}})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	proxy, err := ca.NewProxy([]string{listener.Addr().String()}, t.TempDir()+"/calls.jsonl", ca.Transport{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	cloudConfig := filepath.Join(t.TempDir(), "cloud-config.yaml")
	require.NoError(t, os.WriteFile(cloudConfig, []byte(fmt.Sprintf("address: %q\n", proxy.Address)), 0o600))
	p, err := ca.Start(ctx, ca.Options{Binary: binary, Kubeconfig: l.Kubeconfig(lab.Consumer), CloudConfig: cloudConfig,
		Dir: l.Root + "/log"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(10*time.Second)) })

	_, err = kube.AppsV1().Deployments("default").Create(ctx, deployment(2, "800m"), metav1.CreateOptions{})
	require.NoError(t, err)
	call, err := proxy.Await(ctx, 0, func(c ca.Call) bool { return c.Method == ca.IncreaseSize })
	require.NoError(t, err)
	require.True(t, call.OK(), call)
	require.EqualValues(t, 1, call.Request.(*protos.NodeGroupIncreaseSizeRequest).GetDelta())
	require.Eventually(t, func() bool { // bound to the new node; no kubelet runs the pod
		pods, err := kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=plain-node-1"})
		return err == nil && len(pods.Items) == 1
	}, time.Minute, 200*time.Millisecond)

	_, err = kube.AppsV1().Deployments("default").Update(ctx, deployment(0, "800m"), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, kube.CoreV1().Pods("default").DeleteCollection(ctx,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}))
	call, err = proxy.Await(ctx, call.Seq, func(c ca.Call) bool { return c.Method == ca.DeleteNodes })
	require.NoError(t, err)
	require.True(t, call.OK(), call)
	require.Equal(t, "plain://node-1", call.Request.(*protos.NodeGroupDeleteNodesRequest).GetNodes()[0].GetProviderID())
	require.Len(t, proxy.Calls(func(c ca.Call) bool { return c.Method == ca.IncreaseSize }), 1)
	for _, c := range proxy.Calls(ca.Call.Failed) {
		t.Error(c)
	}
	t.Logf("%d calls recorded", proxy.Last())
}

func deployment(replicas int32, cpu string) *appsv1.Deployment {
	labels := map[string]string{"app": "work"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "work",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
					}}}},
			},
		},
	}
}

// plain is a provider with one group. Its nodes are plain Node objects that are Ready immediately.
type plain struct {
	protos.UnimplementedCloudProviderServer
	kube kubernetes.Interface

	mu    sync.Mutex
	seq   int
	nodes map[string]bool // by provider id
}

func (p *plain) node(name, providerID string) *corev1.Node {
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("10")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
				LastTransitionTime: metav1.Now()},
		}},
	}
}

func (p *plain) group() *protos.NodeGroup { return &protos.NodeGroup{Id: "plain", MaxSize: 3} }

func (p *plain) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

func (p *plain) Cleanup(context.Context, *protos.CleanupRequest) (*protos.CleanupResponse, error) {
	return &protos.CleanupResponse{}, nil
}

func (p *plain) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{}, nil
}

func (p *plain) GetAvailableGPUTypes(context.Context,
	*protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

func (p *plain) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	return &protos.NodeGroupsResponse{NodeGroups: []*protos.NodeGroup{p.group()}}, nil
}

func (p *plain) NodeGroupForNode(_ context.Context,
	r *protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes[r.GetNode().GetProviderID()] {
		return &protos.NodeGroupForNodeResponse{NodeGroup: p.group()}, nil
	}
	return &protos.NodeGroupForNodeResponse{NodeGroup: &protos.NodeGroup{}}, nil
}

func (p *plain) NodeGroupTargetSize(context.Context,
	*protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &protos.NodeGroupTargetSizeResponse{TargetSize: int32(len(p.nodes))}, nil
}

func (p *plain) NodeGroupNodes(context.Context, *protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	res := &protos.NodeGroupNodesResponse{}
	for id := range p.nodes {
		res.Instances = append(res.Instances, &protos.Instance{Id: id,
			Status: &protos.InstanceStatus{InstanceState: protos.InstanceStatus_instanceRunning}})
	}
	return res, nil
}

func (p *plain) NodeGroupTemplateNodeInfo(context.Context,
	*protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	return &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: p.node("template", "")}, nil
}

func (p *plain) NodeGroupIncreaseSize(ctx context.Context,
	r *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range r.GetDelta() {
		p.seq++
		id := fmt.Sprintf("plain://node-%d", p.seq)
		n, err := p.kube.CoreV1().Nodes().Create(ctx, p.node(fmt.Sprintf("plain-node-%d", p.seq), id), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // Kubernetes taints a new node concurrently
			n, err := p.kube.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			if err == nil {
				n.Status = p.node("", "").Status
				_, err = p.kube.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
			}
			return err
		}); err != nil {
			return nil, err
		}
		p.nodes[id] = true
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

func (p *plain) NodeGroupDeleteNodes(ctx context.Context,
	r *protos.NodeGroupDeleteNodesRequest) (*protos.NodeGroupDeleteNodesResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range r.GetNodes() {
		if err := p.kube.CoreV1().Nodes().Delete(ctx, n.GetName(), metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
		delete(p.nodes, n.GetProviderID())
	}
	return &protos.NodeGroupDeleteNodesResponse{}, nil
}
