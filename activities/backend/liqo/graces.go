package liqo

import "time"

// graces are how long Liqo is given for what it does by itself, before we do something about it.
type graces struct {
	// answer is for a slice to be answered, before the provider's Tenant is looked at for the reason.
	answer time.Duration
	// renew is for a Liqo of 1.2 to make the Renew of a new Identity. One that makes none is older.
	renew time.Duration
	// register is for a virtual kubelet to register its Node, before their virtual node is deleted. When the Node comes
	// in the midst of the deletion, Liqo's controller dereferences nil and dies (1.2.0, virtualnode-controller/
	// deletion-routine.go:232), and every deletion in the cluster waits until it is back.
	register time.Duration
	// kubelet is for the pod of a virtual kubelet to be gone after the end of its own grace period, before it is taken for
	// one whose node is lost.
	kubelet time.Duration
	// namespaceMap is for a NamespaceMap that no virtual node needs any longer.
	namespaceMap time.Duration
	// release is for crd-replicator to let go of something by itself, before the provider is asked whether it can.
	release time.Duration
	// refusal is for an API server that has just started to read its roles, before its word is taken that we lack a right.
	refusal time.Duration
	// identify is the same while credentials are tried for the first time, where somebody waits for the answer.
	identify time.Duration
	// certificate is for a provider that is gone to come back, so that the certificate it keeps can be deleted.
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
