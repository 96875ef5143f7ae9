// Package production is the half of the suite production that needs no clusters: Temporal as people run it (package
// temporal) and two of each of our processes, on simulated Liqo. It has tests only; `make e2e SUITE=production-sim` runs
// it alone.
//
//	CA's calls ──> grpcserver 0, 1 ──mTLS──> Temporal frontend, history, matching, worker ──> PostgreSQL
//	               worker     0, 1 ──mTLS──>
//
// CA's part is played over one gRPC connection that knows both servers' addresses, as behind a Service: what is on the
// way when one dies fails, the next call goes to the other. All of them get what they need to know of
// Temporal from the environment alone.
//
// Lines "MEASURED <what> <value> <unit>" on standard output are what docs/temporal.md has its figures from.
package production
