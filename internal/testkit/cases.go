package testkit

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Environment variables of the tests of random cases.
const (
	// EnvSeed sets another seed than 1, such as 7, or one case of a seed, such as 7/4711.
	EnvSeed = "LIQO_AUTOSCALER_TEST_SEED"
	// EnvCases sets another number of cases than shortCases and allCases. `make test-all` sets it to 10000.
	EnvCases = "LIQO_AUTOSCALER_TEST_CASES"
)

// The number of cases of a test with random cases, with -short and without.
const (
	shortCases = 100
	allCases   = 1000
)

// Cases yields the source of each random case of a test. The cases are the same in each run unless EnvSeed is set. The
// log of a test that fails has the seed and the case.
func Cases(t testing.TB) iter.Seq[*rand.Rand] {
	t.Helper()
	seed, first, count := uint64(1), 0, allCases
	if testing.Short() {
		count = shortCases
	}
	if text := os.Getenv(EnvCases); text != "" {
		count = int(number(t, EnvCases, text))
	}
	if text := os.Getenv(EnvSeed); text != "" {
		whole, one, alone := strings.Cut(text, "/")
		seed = number(t, EnvSeed, whole)
		if alone {
			first, count = int(number(t, EnvSeed, one)), 1
		}
	}
	t.Logf("%s=%d, %d cases", EnvSeed, seed, count)
	return func(yield func(*rand.Rand) bool) {
		n := first
		defer func() {
			if t.Failed() {
				t.Logf("%s=%d/%d is this case alone", EnvSeed, seed, n)
			}
		}()
		for ; n < first+count; n++ {
			if !yield(rand.New(rand.NewPCG(seed, uint64(n)))) {
				return
			}
		}
	}
}

func number(t testing.TB, env, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %q is not a number: give one such as 7", env, text)
	}
	return n
}
