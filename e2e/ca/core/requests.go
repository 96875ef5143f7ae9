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

// Requests contains the client and the injector for the ProvisioningRequests of the cluster. The real Cluster
// Autoscaler makes both from a kubeconfig.
type Requests struct {
	Client   *provreqclient.ProvisioningRequestClient
	Injector *provreq.ProvisioningRequestPodsInjector
}

// serve adds parts to the options in all. They are the parts that buildAutoscaler in cluster-autoscaler's main.go
// adds if --enable-provisioning-requests is set. It returns the processor for the list of pods.
func (r Requests) serve(all *core.AutoscalerOptions, list pods.PodListProcessor) pods.PodListProcessor {
	all.ScaleUpOrchestrator = orchestrator.NewWrapperOrchestrator(orchestrator.New(r.Client,
		[]orchestrator.ProvisioningClass{checkcapacity.New(r.Client, nil), besteffortatomic.New(r.Client)}))
	processor := provreq.NewProvReqProcessor(r.Client, all.CheckCapacityProcessorInstance)
	all.LoopStartNotifier = loopstart.NewObserversList([]loopstart.Observer{processor})
	all.Processors.ScaleUpEnforcer = provreq.NewProvisioningRequestScaleUpEnforcer()
	return pods.NewCombinedPodListProcessor([]pods.PodListProcessor{list,
		provreq.NewProvisioningRequestPodsFilter(provreq.NewDefautlEventManager()), r.Injector, processor})
}
