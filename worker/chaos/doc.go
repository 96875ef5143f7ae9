// Package chaos tests that the product loses no instance, and that every answered RPC takes effect, while the
// product's processes die. The package has only tests.
//
// A run has a Temporal dev server, two workers, two gRPC servers (all processes of the built binary) and a simulated
// world in a file. So the test can kill each of these processes with SIGKILL at any moment. Three actors take part in a
// run:
//
//   - the driver plays CA through the gRPC API, one loop after another, and keeps a model: the calls that were answered
//     with OK, and the effects that may or may not have happened (driver_test.go, model_test.go);
//   - the monkey takes random actions, which a seed determines: it kills and stops processes, cancels, terminates and
//     resets workflows, deletes objects as a user would, and makes providers fail (monkey_test.go);
//   - the judge compares the answers to CA with the model after each step. While nothing changes, it also compares the
//     objects of the consumer and of the providers (model_test.go, quiet_test.go).
//
// TestCrash is another run, without the monkey. Its workers and gRPC servers are child processes that run this test
// binary. The test first records the side effects in undisturbed lives of an instance; a life is the creation and
// removal of an instance. In each later life it kills processes at some of these side effects, before or after the
// effect. All lives together cover every side effect, before and after it (crash_test.go, testkit/failpoint).
// TestCrash of package e2e does the same on real Liqo.
//
// TestSoak simulates a day with the same actors: each simulated hour takes some seconds (calendar_test.go). It also
// changes the config, upgrades the processes, and checks the sizes that may grow (soaksize_test.go).
//
// `make chaos` runs the package; -chaos-seed repeats a failed seed. Processes do not interleave the same way twice, so
// a seed repeats the actions of the monkey and the driver, but not their outcome.
package chaos
