// Package burst measures many concurrent scale-outs, on a Temporal dev server and simulated Liqo, and compares them
// with the same number of bare workflows on the same server: see TestBurst, and `make bench SUITE=burst`.
package burst
