// Package burst measures many scale-outs at once, on a Temporal dev server and simulated Liqo, beside as many bare
// workflows on the same server: see TestBurst, and `make bench SUITE=burst`.
package burst
