// Package doctor finds faults of an installation. It examines the consumer cluster, Temporal, the offers and each
// provider, and changes nothing.
package doctor
