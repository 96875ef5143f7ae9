// Package pair implements the command setup. It gives a consumer access to a provider, stores the offer as a Secret in
// the consumer cluster, and writes values files for the charts of liqo-autoscaler and Cluster Autoscaler.
package pair
