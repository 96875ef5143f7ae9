// Package setup implements the commands that prepare an installation: its config, Cluster Autoscaler's config, and
// Temporal.
package setup
