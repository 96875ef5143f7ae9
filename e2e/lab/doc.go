// Package lab starts real Kubernetes and Liqo as processes: one consumer cluster and N providers, see README.md.
//
//	this process ── lab.Start ──> keeper ──> etcd, API server, controller manager, scheduler,     of each cluster
//	   (owner)     pipe, lock       │        Liqo's webhook, controller manager, replicator, IPAM
//	                                └─ replaces the kubelets: runs virtual kubelets, and optionally Liqo's gateways,
//	                                   as processes
//
// The package builds missing binaries, allows one lab per slot on a machine, and removes the processes and files that
// an earlier run has left behind. A lab itself leaves nothing behind: the keeper ends the lab when the pipe from its
// owner closes, which happens even if the owner is killed. The keeper's processes die with the keeper.
package lab
