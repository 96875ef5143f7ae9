package worker_test

import (
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// searchAttributes returns the search attributes of the dev server's default namespace.
func searchAttributes() temporal.SearchAttributes {
	var all []temporal.SearchAttributeUpdate
	for _, name := range workflows.SearchAttributes {
		all = append(all, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(""))
	}
	return temporal.NewSearchAttributes(all...)
}
