// Package lab starts real Kubernetes and Liqo as processes: one consumer cluster and N providers, see README.md.
//
// The work is done by build.sh and lab.py beside this file; this package makes it safe to use from tests: one lab at a
// time on a machine (the ports are fixed), nothing left of an earlier run, nothing left after a failed one.
package lab
