package strict

import (
	"errors"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityForm keeps exponents short: ParseQuantity, and all that computes with its result, works with as many digits as
// the text says.
var quantityForm = regexp.MustCompile(`^[+-]?[0-9.]{1,24}([numkKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

// Quantity reads an amount that somebody else has written; resource.ParseQuantity could keep the process busy for minutes.
func Quantity(text string) (resource.Quantity, error) {
	if !quantityForm.MatchString(text) {
		return resource.Quantity{}, errors.New("want a quantity such as 4, 500m or 8Gi")
	}
	return resource.ParseQuantity(text)
}
