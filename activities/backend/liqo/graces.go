package liqo

import "time"

// graces contains the times for which this package waits for Liqo's own work before it intervenes.
type graces struct {
	// answer is the time for the provider to answer a slice. Afterwards Join reads the provider's Tenant to find the
	// reason for the delay.
	answer time.Duration
	// renew is the time for Liqo 1.2 to make the Renew of a new Identity. Earlier versions of Liqo never make one.
	renew time.Duration
	// register is the time for a virtual kubelet to register its Node before its virtual node is deleted. If the Node
	// is registered during the deletion, Liqo's controller dereferences nil and crashes (1.2.0,
	// virtualnode-controller/deletion-routine.go:232). Then every deletion of a virtual node in the cluster waits
	// until the controller runs again.
	register time.Duration
	// kubelet is the time in which the pod of a virtual kubelet must be gone after the end of the pod's own grace
	// period. Afterwards the node on which the pod runs counts as lost.
	kubelet time.Duration
	// namespaceMap is the time for the removal of a NamespaceMap that no virtual node needs any longer.
	namespaceMap time.Duration
	// release is the time for crd-replicator to remove its finalizer from a deleted object on its own. Afterwards
	// this package checks the provider for the reason.
	release time.Duration
	// refusal is the time for a newly started API server to read its roles. If the API server answers during this
	// time that we lack a permission, this answer is not final.
	refusal time.Duration
	// identify is like refusal, but for the first use of credentials. It is shorter, because a user waits for the
	// answer.
	identify time.Duration
	// certificate is the time for which Return waits for an unreachable provider, so that it can delete the certificate
	// on that provider.
	certificate time.Duration
}

func defaultGraces() graces {
	return graces{
		answer:       3 * time.Second,
		renew:        3 * time.Second,
		register:     10 * time.Second,
		kubelet:      10 * time.Second,
		namespaceMap: 5 * time.Second,
		release:      5 * time.Second,
		refusal:      10 * time.Second,
		identify:     3 * time.Second,
		certificate:  10 * time.Second,
	}
}
