// Package conformance checks a server of Cluster Autoscaler's externalgrpc protocol, here called a provider: ours or
// any other. It checks properties on which Cluster Autoscaler ("CA") relies without a check of its own.
//
// Each rule names one such property, the place in CA's source that relies on it, and the remedy for a provider that
// breaks the rule. The places are paths below cluster-autoscaler/ of CA 1.36.1; unless stated otherwise they are the
// same in 1.33.0. Some rules only read. The other rules change the target size of one node group and restore it, see
// Options.Group.
package conformance
