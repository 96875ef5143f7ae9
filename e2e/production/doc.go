// Package production is the half of the suite "production" that needs no clusters. It runs Temporal as in production
// (package temporal), and two workers and two gRPC servers with simulated Liqo. The package contains only tests,
// which `make e2e SUITE=production-sim` runs without the other half.
//
//	CA's calls ──> grpcserver 0, 1 ──mTLS──> Temporal frontend, history, matching, worker ──> PostgreSQL
//	               worker     0, 1 ──mTLS──>
//
// The test acts as CA. It uses one gRPC connection with the addresses of both servers, like a client of a Service.
// When a server dies, its pending calls fail, and the next call goes to the other server. All processes read the
// address of Temporal from the environment only.
//
// The lines "MEASURED <what> <value> <unit>" on standard output are the source of the figures in docs/temporal.md.
package production
