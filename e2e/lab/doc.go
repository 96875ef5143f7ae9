// Package lab starts real Kubernetes and Liqo as processes: one consumer cluster and N providers, see README.md.
//
//	this process ── lab.Start ──> keeper ──> etcd, API server, controller manager, scheduler,     of each cluster
//	   (owner)     pipe, lock       │        Liqo's webhook, controller manager, replicator, IPAM
//	                                └─ stands in for the kubelets: runs virtual kubelets, and Liqo's gateways where
//	                                   asked, as processes
//
// It builds what is missing, allows one lab per slot on a machine, clears what an earlier run left, and leaves nothing
// itself: the keeper ends the lab when its pipe closes, however the owner died, and what it started dies with it.
package lab
