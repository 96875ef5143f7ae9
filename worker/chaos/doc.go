// Package chaos proves that the product keeps its promises while its processes die. It has tests only.
//
// A run has a Temporal dev server, two workers, two gRPC servers (all processes of the built binary) and a simulated
// world in a file, so every process except the test itself can be killed with SIGKILL at any moment. Three actors work
// on it:
//
//   - the driver plays CA through the gRPC API, one loop after another, and keeps a model: the calls that were answered
//     with OK, and the effects that may or may not have happened (driver_test.go, model_test.go);
//   - the monkey, seeded, kills, stops, cancels, terminates, resets, deletes by hand and makes providers fail
//     (monkey_test.go);
//   - the judge compares the answers to CA with the model after each step, and at quiet points the objects on both
//     sides (model_test.go, quiet_test.go).
//
// TestCrash is another run, without monkey: a worker or a gRPC server, which are further processes of this test binary,
// dies before and after each side effect that was observed in the life of an instance (crash_test.go,
// testkit/failpoint). TestCrash of package e2e does the same on real Liqo.
//
// TestSoak is a run of a day: the same actors and judge, on a calendar by which each hour takes some seconds
// (calendar_test.go), with changes of the config, upgrades, and a check of the sizes that may grow (soaksize_test.go).
//
// `make chaos` runs it; -chaos-seed repeats a failed seed. Processes do not interleave the same way twice, so a seed
// repeats the actions of the monkey and the driver, but not their outcome.
package chaos
