//go:build externalgrpc

package core

import (
	"k8s.io/autoscaler/cluster-autoscaler/core"
	"k8s.io/autoscaler/cluster-autoscaler/observers/loopstart"
	"k8s.io/autoscaler/cluster-autoscaler/processors/pods"
	"k8s.io/autoscaler/cluster-autoscaler/processors/provreq"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/besteffortatomic"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/checkcapacity"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/orchestrator"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/provreqclient"
)

// Requests are the ProvisioningRequests of the cluster. Cluster Autoscaler makes both parts from a kubeconfig.
type Requests struct {
	Client   *provreqclient.ProvisioningRequestClient
	Injector *provreq.ProvisioningRequestPodsInjector
}

// serve adds the same parts as buildAutoscaler in cluster-autoscaler's main.go with --enable-provisioning-requests. It
// returns the processors of the list of pods.
func (r Requests) serve(all *core.AutoscalerOptions, list pods.PodListProcessor) pods.PodListProcessor {
	all.ScaleUpOrchestrator = orchestrator.NewWrapperOrchestrator(orchestrator.New(r.Client,
		[]orchestrator.ProvisioningClass{checkcapacity.New(r.Client, nil), besteffortatomic.New(r.Client)}))
	processor := provreq.NewProvReqProcessor(r.Client, all.CheckCapacityProcessorInstance)
	all.LoopStartNotifier = loopstart.NewObserversList([]loopstart.Observer{processor})
	all.Processors.ScaleUpEnforcer = provreq.NewProvisioningRequestScaleUpEnforcer()
	return pods.NewCombinedPodListProcessor([]pods.PodListProcessor{list,
		provreq.NewProvisioningRequestPodsFilter(provreq.NewDefautlEventManager()), r.Injector, processor})
}
