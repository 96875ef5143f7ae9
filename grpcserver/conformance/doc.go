// Package conformance checks whether a provider of Cluster Autoscaler's externalgrpc protocol, ours or any other, keeps
// to what Cluster Autoscaler ("CA") takes for granted and does not check.
//
// Each rule names one such thing, where in CA's source it is relied upon (paths below cluster-autoscaler/ of CA 1.36.1,
// the same in 1.33.0 unless it says otherwise), and what to do about a provider that breaks it. Rules either read only,
// or they change the target size of one node group and give everything back; see Options.Group.
package conformance
