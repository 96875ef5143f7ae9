// Package conformance checks a provider of Cluster Autoscaler's externalgrpc protocol, ours or any other. It checks
// properties that Cluster Autoscaler ("CA") relies on but does not verify.
//
// Each rule names one such property, the place in CA's source that relies on it (paths below cluster-autoscaler/ of CA
// 1.36.1, the same in 1.33.0 unless stated otherwise), and the remedy for a provider that breaks the rule. Some rules
// only read. The other rules change the target size of one node group and restore it, see Options.Group.
package conformance
