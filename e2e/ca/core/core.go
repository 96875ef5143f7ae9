//go:build externalgrpc

// Package core builds Cluster Autoscaler's core as cluster-autoscaler's main.go does.
package core

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"k8s.io/autoscaler/cluster-autoscaler/config"
	"k8s.io/autoscaler/cluster-autoscaler/core"
	"k8s.io/autoscaler/cluster-autoscaler/core/podlistprocessor"
	"k8s.io/autoscaler/cluster-autoscaler/core/scaleup/orchestrator"
	"k8s.io/autoscaler/cluster-autoscaler/debuggingsnapshot"
	processors "k8s.io/autoscaler/cluster-autoscaler/processors"
	"k8s.io/autoscaler/cluster-autoscaler/processors/nodegroupset"
	"k8s.io/autoscaler/cluster-autoscaler/processors/nodeinfosprovider"
	"k8s.io/autoscaler/cluster-autoscaler/processors/nodes"
	"k8s.io/autoscaler/cluster-autoscaler/processors/scaledowncandidates"
	"k8s.io/autoscaler/cluster-autoscaler/processors/scaledowncandidates/emptycandidates"
	"k8s.io/autoscaler/cluster-autoscaler/processors/scaledowncandidates/previouscandidates"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/clustersnapshot/predicate"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/clustersnapshot/store"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/drainability/rules"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/framework"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/options"
	"k8s.io/autoscaler/cluster-autoscaler/simulator/scheduling"
)

// New builds the autoscaler as buildAutoscaler in cluster-autoscaler's main.go does, and waits until the informers
// are synced. CA's NewAutoscaler creates the cloud provider from --cloud-config, with externalgrpc.BuildExternalGrpc.
// The argument requests is needed only with --enable-provisioning-requests.
func New(ctx context.Context, opts config.AutoscalingOptions, client kubernetes.Interface,
	snapshotter debuggingsnapshot.DebuggingSnapshotter, requests *Requests) (
	core.Autoscaler, informers.SharedInformerFactory, error) {
	if opts.ProvisioningRequestEnabled && requests == nil || opts.ProactiveScaleupEnabled {
		return nil, nil, errors.New("this build has no proactive scale-up, and ProvisioningRequests only in one process")
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	handle, err := framework.NewHandle(factory, opts.SchedulerConfig, opts.DynamicResourceAllocationEnabled)
	if err != nil {
		return nil, nil, err
	}
	deletion := options.NewNodeDeleteOptions(opts)
	drainability := rules.Default(deletion)
	snapshot := predicate.NewPredicateSnapshot(
		store.NewDeltaSnapshotStore(opts.ClusterSnapshotParallelism), handle, opts.DynamicResourceAllocationEnabled)

	all := core.AutoscalerOptions{
		AutoscalingOptions:   opts,
		FrameworkHandle:      handle,
		ClusterSnapshot:      snapshot,
		KubeClient:           client,
		InformerFactory:      factory,
		DebuggingSnapshotter: snapshotter,
		DeleteOptions:        deletion,
		DrainabilityRules:    drainability,
		ScaleUpOrchestrator:  orchestrator.New(),
		Processors:           processors.DefaultProcessors(opts),
	}
	all.Processors.TemplateNodeInfoProvider = nodeinfosprovider.NewDefaultTemplateNodeInfoProvider(
		&opts.NodeInfoCacheExpireTime, opts.ForceDaemonSets)
	all.Processors.PodListProcessor = podlistprocessor.NewDefaultPodListProcessor(scheduling.ScheduleAnywhere)
	if opts.ProvisioningRequestEnabled {
		all.Processors.PodListProcessor = requests.serve(&all, all.Processors.PodListProcessor)
	}
	all.Processors.ScaleDownNodeProcessor = scaleDownCandidates(all)
	all.Processors.NodeGroupSetProcessor = &nodegroupset.BalancingNodeGroupSetProcessor{Comparator: comparator(opts)}

	autoscaler, err := core.NewAutoscaler(all, factory)
	if err != nil {
		return nil, nil, err
	}
	factory.Start(ctx.Done()) // NewAutoscaler has registered further informers
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, nil, errors.New("sync informers: gave up")
		}
	}
	return autoscaler, factory, nil
}

// trim removes managed fields, as CA's informers do.
func trim(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

func scaleDownCandidates(all core.AutoscalerOptions) nodes.ScaleDownNodeProcessor {
	previous := previouscandidates.NewPreviousCandidates()
	comparers := []scaledowncandidates.CandidatesComparer{
		emptycandidates.NewEmptySortingProcessor(
			emptycandidates.NewNodeInfoGetter(all.ClusterSnapshot), all.DeleteOptions, all.DrainabilityRules),
		previous,
	}
	all.Processors.ScaleDownCandidatesNotifier.Register(previous)
	combined := scaledowncandidates.NewCombinedScaleDownCandidatesProcessor()
	combined.Register(scaledowncandidates.NewScaleDownCandidatesSortingProcessor(comparers))
	if all.ScaleDownDelayTypeLocal {
		delay := scaledowncandidates.NewScaleDownCandidatesDelayProcessor()
		combined.Register(delay)
		all.Processors.ScaleStateNotifier.Register(delay)
	}
	return combined
}

func comparator(opts config.AutoscalingOptions) nodegroupset.NodeInfoComparator {
	if len(opts.BalancingLabels) > 0 {
		return nodegroupset.CreateLabelNodeInfoComparator(opts.BalancingLabels)
	}
	return nodegroupset.CreateGenericNodeInfoComparator(opts.BalancingExtraIgnoredLabels, opts.NodeGroupSetRatios)
}
