// Package setup implements the commands that prepare an installation. They concern its config, the config of Cluster
// Autoscaler, and Temporal.
package setup
