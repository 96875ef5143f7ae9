// Package chaos proves that the product keeps its promises while its processes die. It has tests only.
//
// A run has a Temporal dev server, two workers, two gRPC servers (all processes of the built binary) and a simulated
// world in a file, so everything but the test itself can be killed with SIGKILL at any moment. Three actors work on it:
//
//   - the driver plays CA through the gRPC API, one loop after the other, and keeps a model: what was answered with OK,
//     and what may or may not have happened (driver_test.go, model_test.go);
//   - the monkey, seeded, kills, stops, cancels, terminates, resets, deletes by hand and makes providers fail
//     (monkey_test.go);
//   - the judge holds what CA is told against the model after each step, and at quiet points what exists on both sides
//     (model_test.go, quiet_test.go).
//
// TestCrash is another run, without monkey: a worker or a gRPC server, which are this test binary run again, dies
// before and after each side effect that the life of an instance was seen to have (crash_test.go, testkit/failpoint).
// The same on real Liqo is TestCrash of package e2e.
//
// TestSoak is a run of a day: the first one's actors and judge, on a calendar by which each hour takes some seconds
// (calendar_test.go), with changes of the config, upgrades, and a look at what may grow (soaksize_test.go).
//
// `make chaos` runs it; a seed that failed is run again with -chaos-seed. Processes do not interleave the same way
// twice, so a seed repeats what the monkey and the driver want, not what comes of it.
package chaos
