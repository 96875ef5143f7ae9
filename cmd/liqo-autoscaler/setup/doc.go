// Package setup is the commands that prepare an installation: its config, Cluster Autoscaler's, and Temporal.
package setup
