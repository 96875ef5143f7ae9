// Package doctor looks for what is wrong with an installation: in the consumer cluster, in Temporal, in what is
// offered, and with each provider. It changes nothing.
package doctor
