package document_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet/document"
)

func TestCheck(t *testing.T) {
	swelling := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 200) + "]\n"
	for name, c := range map[string]struct {
		document string
		want     error
	}{
		"one":             {"a: 1\n", nil},
		"none":            {"", nil},
		"an empty second": {"a: 1\n---\n", nil},
		"not YAML":        {"a: [", nil},
		"a second":        {"a: 1\n---\nb: 2\n", document.ErrSeveral},
		"what follows":    {"a: 1\n...\nb: 2\n", document.ErrSeveral},
		"few aliases":     {"a: &a x\nb: [*a, *a]\n", nil},
		"many aliases":    {swelling, document.ErrSwollen},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, document.Check([]byte(c.document)), c.want) })
	}
}
