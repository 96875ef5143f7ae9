// Package doctor finds faults of an installation: in the consumer cluster, in Temporal, in the offers, and with each
// provider. It changes nothing.
package doctor
