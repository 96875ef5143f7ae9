package worker_test

import (
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// searchAttributes are what the dev server's default namespace has.
func searchAttributes() temporal.SearchAttributes {
	var all []temporal.SearchAttributeUpdate
	for _, name := range workflows.SearchAttributes {
		all = append(all, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(""))
	}
	return temporal.NewSearchAttributes(all...)
}
