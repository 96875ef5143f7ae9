// Package production is the half of the suite "production" that needs no clusters. It runs Temporal as in production
// (package temporal) and two of each of our processes, on simulated Liqo. The package contains only tests, which `make
// e2e SUITE=production-sim` runs without the other half.
//
//	CA's calls ──> grpcserver 0, 1 ──mTLS──> Temporal frontend, history, matching, worker ──> PostgreSQL
//	               worker     0, 1 ──mTLS──>
//
// The test acts as CA on one gRPC connection with both servers' addresses, like a client of a Service. When a server
// dies, its pending calls fail, and the next call goes to the other server. All processes find Temporal by the
// environment alone.
//
// The lines "MEASURED <what> <value> <unit>" on standard output are the source of the figures in docs/temporal.md.
package production
