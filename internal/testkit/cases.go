package testkit

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// These constants are the environment variables for tests with random cases.
const (
	// EnvSeed sets the seed, such as 7 (the default is 1). It can also select a single case, such as 7/4711.
	EnvSeed = "LIQO_AUTOSCALER_TEST_SEED"
	// EnvCases sets the number of cases (the default is shortCases or allCases). `make test-all` sets it to 10000.
	EnvCases = "LIQO_AUTOSCALER_TEST_CASES"
)

// These constants are the default numbers of cases: with -short, and without -short.
const (
	shortCases = 100
	allCases   = 1000
)

// Cases yields one random source for each case of a test. Each run of the test has the same cases, unless EnvSeed is
// set. If the test fails, its log contains the seed and the number of the case that failed.
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
				t.Logf("%s=%d/%d runs only this case", EnvSeed, seed, n)
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
