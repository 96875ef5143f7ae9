//go:build externalgrpc

package inprocess

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	caconfig "k8s.io/autoscaler/cluster-autoscaler/config"
)

// status returns the text about the last loop that `kubectl get configmap cluster-autoscaler-status` shows.
func (w *world) status() string {
	found, err := w.kube.CoreV1().ConfigMaps(w.options.ConfigNamespace).Get(w.ctx, w.options.StatusConfigMapName,
		metav1.GetOptions{})
	require.NoError(w.t, err)
	return found.Data["status"]
}

// mutations returns the calls that change something and that have arrived since mutations was last called.
func (w *world) mutations() (out []string) {
	for _, c := range w.proxy.Calls(func(c ca.Call) bool { return c.Seq > w.told }) {
		text := ""
		switch r := c.Request.(type) {
		case *protos.NodeGroupIncreaseSizeRequest:
			text = fmt.Sprintf("%s +%d", r.GetId(), r.GetDelta())
		case *protos.NodeGroupDecreaseTargetSizeRequest:
			text = fmt.Sprintf("%s %d", r.GetId(), r.GetDelta())
		case *protos.NodeGroupDeleteNodesRequest:
			text = fmt.Sprintf("%s releases %d", r.GetId(), len(r.GetNodes()))
		}
		if text != "" && !c.OK() {
			text += ": " + c.Code
		}
		if text != "" {
			out = append(out, text)
		}
		w.told = c.Seq
	}
	return out
}

// targets returns the target sizes of all running groups with a target above 0.
func (w *world) targets() map[string]int {
	w.groups.mu.Lock()
	defer w.groups.mu.Unlock()
	out := map[string]int{}
	for id, l := range w.groups.by {
		if n := l.Target(); n > 0 {
			out[id] = n
		}
	}
	return out
}

// listed returns the groups that the last answer to CA contained.
func (w *world) listed() []string {
	calls := w.proxy.Calls(func(c ca.Call) bool { return c.Method == "NodeGroups" && c.OK() })
	require.NotEmpty(w.t, calls)
	groups := map[string]bool{}
	for _, g := range calls[len(calls)-1].Response.(*protos.NodeGroupsResponse).GetNodeGroups() {
		groups[g.GetId()] = true
	}
	return slices.Sorted(maps.Keys(groups))
}

func coresTotal(n int64) func(*caconfig.AutoscalingOptions) {
	return func(o *caconfig.AutoscalingOptions) { o.MaxCoresTotal = n }
}
