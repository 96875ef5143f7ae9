package conformance

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

func describingRules() []Rule {
	return []Rule{
		{ID: "template-in-both", Demands: "NodeGroupTemplateNodeInfo has the same Node in fields 1 and 2.",
			Source: "cloudprovider/externalgrpc/externalgrpc_node_group.go TemplateNodeInfo: CA up to 1.34.1 reads only " +
				"field 1, CA from 1.35 on only field 2, and CA panics if its field is missing",
			Fix:   "send nodeInfo = 1, and the same Node as bytes in nodeBytes = 2; never Unimplemented",
			check: templateInBoth},
		{ID: "template-resources", Demands: "The template's capacity and allocatable have cpu, memory and pods.",
			Source: "simulator/node_info_utils.go: no pod fits on a Node whose capacity is 0 pods",
			Fix:    "set the capacity and allocatable that the real Nodes will have", check: templateResources},
		{ID: "template-labels", Demands: "The template's labels are valid, with kubernetes.io/os and kubernetes.io/arch.",
			Source: "core/scaleup/orchestrator/orchestrator.go: pods select Nodes by the template's labels",
			Fix:    "give the template every label that the real Nodes will have", check: templateLabels},
		{ID: "template-is-counted", Demands: "The template has no label type=virtual-kubelet.",
			Source: "core/utils/utils.go: CA excludes such Nodes from all its sums",
			Fix:    "remove the label, also from the real Nodes", check: templateIsCounted},
		{ID: "gpu-label", Demands: "GPULabel returns a label, which may be empty.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go: CA repeats a failed call for each Node",
			Fix:    "answer OK, with \"\" when no label marks GPU Nodes", check: gpuLabel},
		{ID: "gpu-types", Demands: "GetAvailableGPUTypes returns a list, which may be empty.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go: CA repeats a failed call in each loop",
			Fix:    "answer OK, with an empty map when you have none", check: gpuTypes},
		{ID: "gpu-label-means-gpu", Demands: "A template with the GPU label has a GPU.",
			Source: "processors/customresources/gpu_processor.go, simulator/utilization/info.go: CA waits for the GPU, or " +
				"treats a Node without GPU as idle",
			Fix: "put the label on templates and Nodes with GPUs only", check: gpuLabelMeansGPU},
		{ID: "options-complete", Demands: "Options for CA up to 1.34 are complete or absent.",
			Source: "cloudprovider/externalgrpc/externalgrpc_node_group.go GetOptions (1.33): CA panics without a duration",
			Fix:    "answer Unimplemented, or start from the defaults in the request and fill in every duration",
			check:  optionsComplete},
		{ID: "options-none", Demands: "Options for CA 1.35 and 1.36 are absent.",
			Source: "kubernetes/autoscaler #10245: with options, CA counts starting Nodes as unready, and adds more",
			Fix:    "answer Unimplemented if the request's defaults have fields 8 to 10 but not 11; CA then uses its flags",
			check:  optionsNone},
		{ID: "node-price", Demands: "PricingNodePrice is finite and equal for CA up to 1.34 and for later versions, or " +
			"Unimplemented.",
			Source: "expander/price/price.go: CA excludes a group without a price, and does not scale out if no group has one",
			Fix:    "derive the price from a label of the group, with a finite default; read times from fields 2, 3 or 4, 5",
			check:  nodePrice, repeated: true},
		{ID: "pod-price", Demands: "PricingPodPrice is finite and equal for CA up to 1.34 and for later versions, or " +
			"Unimplemented.",
			Source: "expander/price/price.go: CA excludes a group if one of its pods has no price",
			Fix:    "read the pod from field 1, or as bytes from field 4; read times from fields 2, 3 or 5, 6",
			check:  podPrice, repeated: true},
	}
}

// template returns a group's template twice. first is the template that CA before 1.35 reads, and second is the
// template that CA reads from 1.35 on.
func (p *provider) template(ctx context.Context, group string) (first, second *corev1.Node, err error) {
	resp, err := call(ctx, p, "NodeGroupTemplateNodeInfo", p.client.NodeGroupTemplateNodeInfo,
		&protos.NodeGroupTemplateNodeInfoRequest{Id: group})
	if err != nil {
		return nil, nil, err
	}
	if raw := wire.Field(resp, 2); raw != nil {
		second = &corev1.Node{}
		if err := second.Unmarshal(raw); err != nil {
			return nil, nil, fmt.Errorf("field 2 of the template is not a Node: %w", err)
		}
	}
	return resp.GetNodeInfo(), second, nil
}

func templateInBoth(ctx context.Context, p *provider) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		first, second, err := p.template(ctx, g.GetId())
		switch {
		case err != nil:
			fail("node group %s: %v", g.GetId(), err)
		case first == nil || second == nil:
			fail("node group %s: field 1 present: %t, field 2 present: %t", g.GetId(), first != nil, second != nil)
		}
		one, err1 := first.Marshal()
		two, err2 := second.Marshal()
		if err1 != nil || err2 != nil || !bytes.Equal(one, two) {
			fail("node group %s: the Nodes in the fields 1 and 2 differ", g.GetId())
		}
	})
}

// eachTemplate checks the template of each group.
func (p *provider) eachTemplate(ctx context.Context, check func(*corev1.Node)) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		first, second, err := p.template(ctx, g.GetId())
		template := cmp.Or(first, second)
		if err != nil || template == nil {
			skip("node group %s has no template", g.GetId())
		}
		if seen := p.evaluate(func() { check(template) }); seen.verdict != Passed {
			end(seen.verdict, "node group %s: %s", g.GetId(), seen.text)
		}
	})
}

func templateResources(ctx context.Context, p *provider) {
	p.eachTemplate(ctx, func(n *corev1.Node) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			capacity, allocatable := n.Status.Capacity[name], n.Status.Allocatable[name]
			if capacity.Sign() <= 0 || allocatable.Sign() <= 0 || allocatable.Cmp(capacity) > 0 {
				fail("%s: capacity %s, allocatable %s", name, capacity.String(), allocatable.String())
			}
		}
	})
}

func templateLabels(ctx context.Context, p *provider) {
	p.eachTemplate(ctx, func(n *corev1.Node) {
		for key, value := range n.Labels {
			if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
				fail("%q=%q is not a valid label", key, value)
			}
		}
		for _, key := range []string{corev1.LabelOSStable, corev1.LabelArchStable} {
			if n.Labels[key] == "" {
				fail("the label %s is missing", key)
			}
		}
	})
}

func templateIsCounted(ctx context.Context, p *provider) {
	p.eachTemplate(ctx, func(n *corev1.Node) {
		if n.Labels["type"] == "virtual-kubelet" {
			fail("the template has the label")
		}
	})
}

func gpuLabel(ctx context.Context, p *provider) {
	resp, err := call(ctx, p, "GPULabel", p.client.GPULabel, &protos.GPULabelRequest{})
	failOn(err)
	p.setText("%q", resp.GetLabel())
}

func gpuTypes(ctx context.Context, p *provider) {
	resp, err := call(ctx, p, "GetAvailableGPUTypes", p.client.GetAvailableGPUTypes, &protos.GetAvailableGPUTypesRequest{})
	failOn(err)
	p.setText("%d types", len(resp.GetGpuTypes()))
}

// gpus lists the resources that CA 1.36 treats as GPUs.
var gpus = []corev1.ResourceName{"nvidia.com/gpu", "microsoft.com/directx", "amd.com/gpu", "gpu.intel.com/xe",
	"habana.ai/gaudi"}

func gpuLabelMeansGPU(ctx context.Context, p *provider) {
	resp, err := call(ctx, p, "GPULabel", p.client.GPULabel, &protos.GPULabelRequest{})
	skipOn(err)
	p.eachTemplate(ctx, func(n *corev1.Node) {
		if _, labelled := n.Labels[resp.GetLabel()]; !labelled {
			return
		}
		for _, name := range gpus {
			if amount := n.Status.Allocatable[name]; amount.Sign() > 0 {
				return
			}
		}
		fail("the template has the label %s but none of the resources %v", resp.GetLabel(), gpus)
	})
}

// options returns a group's options. It returns nil and no error when the provider has no options for the group.
func (p *provider) options(ctx context.Context, group string,
	defaults *protos.NodeGroupAutoscalingOptions) (*protos.NodeGroupAutoscalingOptions, error) {
	resp, err := call(ctx, p, "NodeGroupGetOptions", p.client.NodeGroupGetOptions,
		&protos.NodeGroupAutoscalingOptionsRequest{Id: group, Defaults: defaults})
	if unimplemented(err) {
		return nil, nil //nolint:nilnil // a provider without options conforms
	}
	return resp.GetNodeGroupAutoscalingOptions(), err
}

func optionsComplete(ctx context.Context, p *provider) {
	quarter := &metav1.Duration{Duration: 15 * time.Minute}
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		got, err := p.options(ctx, g.GetId(), &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5,
			ScaleDownGpuUtilizationThreshold: 0.5, ScaleDownUnneededTime: quarter, ScaleDownUnreadyTime: quarter,
			MaxNodeProvisionTime: quarter})
		switch {
		case err != nil:
			fail("node group %s: %v", g.GetId(), err)
		case got == nil:
		case got.GetScaleDownUnneededTime() == nil, got.GetScaleDownUnreadyTime() == nil,
			got.GetMaxNodeProvisionTime() == nil || got.GetMaxNodeProvisionTime().Duration <= 0:
			fail("node group %s: one of the durations is missing in %v", g.GetId(), got)
		}
	})
}

func optionsNone(ctx context.Context, p *provider) {
	quarter, err := proto.Marshal(durationpb.New(15 * time.Minute))
	skipOn(err)
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		defaults := &protos.NodeGroupAutoscalingOptions{ScaleDownUtilizationThreshold: 0.5,
			ScaleDownGpuUtilizationThreshold: 0.5}
		wire.Append(defaults, 8, quarter)
		wire.Append(defaults, 9, quarter)
		wire.Append(defaults, 10, quarter)
		got, err := p.options(ctx, g.GetId(), defaults)
		if err != nil || got != nil {
			fail("node group %s: options %v, error %v", g.GetId(), got, err)
		}
	})
}
