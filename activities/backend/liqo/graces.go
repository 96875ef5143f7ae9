package liqo

import "time"

// graces holds the times that Liqo has for its own work before this package intervenes.
type graces struct {
	// answer is the time for the answer to a slice. Afterwards the provider's Tenant is read for the reason of the delay.
	answer time.Duration
	// renew is the time for Liqo 1.2 to make the Renew of a new Identity. A Liqo that makes none is older.
	renew time.Duration
	// register is the time for a virtual kubelet to register its Node before its virtual node is deleted. When the Node is
	// registered during the deletion, Liqo's controller dereferences nil and crashes (1.2.0,
	// virtualnode-controller/deletion-routine.go:232), and every deletion in the cluster waits until it runs again.
	register time.Duration
	// kubelet is the time for the pod of a virtual kubelet to be removed after the end of its own grace period. Afterwards
	// its node counts as lost.
	kubelet time.Duration
	// namespaceMap is the time for the removal of a NamespaceMap that no virtual node needs any longer.
	namespaceMap time.Duration
	// release is the time for crd-replicator to release an object on its own. Afterwards the provider is checked for the
	// reason.
	release time.Duration
	// refusal is the time for a newly started API server to read its roles. Before that, its answer that we lack a
	// permission is not believed.
	refusal time.Duration
	// identify is the same time for the first use of credentials, where a user waits for the answer.
	identify time.Duration
	// certificate is the time for an unreachable provider to return, so that the certificate that it keeps can be deleted.
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
