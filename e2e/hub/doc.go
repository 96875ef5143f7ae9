// Package hub measures a whole hub with real processes: the official Temporal server on SQLite, one worker and one
// gRPC server with the default settings, simulated Liqo, and a proxy that lengthens the round trip to Temporal. `make
// bench SUITE=hub` runs the suite, which prints BENCH lines.
//
//	CELLS=10x20,50x200,200x1000   node groups x offers
//	RTTS=0,25,100,250             milliseconds of round trip to Temporal
//	OLD=5aa83e5                   a commit that is built and measured in the same run, for comparison
//
// A cell (one combination of these values) takes six to eight minutes. `make bench SUITE=thousand` and `make bench
// SUITE=start` measure a large scale-out and a first start with the same processes. The tests do not fail because of a
// measured time.
package hub
