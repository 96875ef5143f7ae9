// Package burst measures many concurrent scale-outs, on a Temporal dev server and a simulated Liqo. It compares them
// with the same number of minimal workflows on the same server: see TestBurst, and `make bench SUITE=burst`.
package burst
