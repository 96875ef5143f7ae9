package testkit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// EnvSeed is the environment variable with another seed for the tests of random cases.
const EnvSeed = "LIQO_AUTOSCALER_TEST_SEED"

// Cases returns the source of a test's random cases and how many of them to try: few where -short is given. The cases
// are the same in each run unless EnvSeed is set. The log of a test that fails has the seed.
func Cases(t testing.TB, few, all int) (*rand.Rand, int) {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv(EnvSeed); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s=%q is not a number: give a seed such as 7", EnvSeed, text)
		}
		seed = given
	}
	n := all
	if testing.Short() {
		n = few
	}
	t.Logf("%s=%d, %d cases", EnvSeed, seed, n)
	return rand.New(rand.NewPCG(seed, 0)), n
}
