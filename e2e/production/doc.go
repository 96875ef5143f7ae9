// Package production is the half of the suite production that needs no clusters: Temporal as it runs in production
// (package temporal) and two of each of our processes, on simulated Liqo. It has tests only; `make e2e
// SUITE=production-sim` runs it alone.
//
//	CA's calls ──> grpcserver 0, 1 ──mTLS──> Temporal frontend, history, matching, worker ──> PostgreSQL
//	               worker     0, 1 ──mTLS──>
//
// The test plays CA over one gRPC connection that knows both servers' addresses, as behind a Service: when a server
// dies, its pending calls fail, and the next call goes to the other server. All processes find Temporal by the
// environment alone.
//
// The lines "MEASURED <what> <value> <unit>" on standard output are the source of the figures in docs/temporal.md.
package production
