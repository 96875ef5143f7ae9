package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"
)

// Check is a custom rule for text fields. A validate tag names the rule.
type Check struct {
	Valid func(string) bool
	// Fault states the fault and the remedy. The text of the field replaces %q.
	Fault string
}

// Rules validates structs by their validate tags.
type Rules struct {
	validate *validator.Validate
	checks   map[string]Check
	missing  map[string]string
}

// embedded is the element for an embedded struct in the validator's paths. The paths in the document have no such
// element.
const embedded = "<embedded>"

// NewRules returns Rules with the given checks, by tag. missing contains the remedies for missing required fields, by
// the Go names of the fields. NewRules panics if a tag is malformed.
func NewRules(checks map[string]Check, missing map[string]string) *Rules {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			return embedded
		}
		return name
	})
	for tag, check := range checks {
		valid := func(fl validator.FieldLevel) bool { return check.Valid(fl.Field().String()) }
		if err := v.RegisterValidation(tag, valid); err != nil {
			panic(err)
		}
	}
	return &Rules{v, checks, missing}
}

// Check validates a struct, or the struct to which target points, and returns its faults.
func (r *Rules) Check(target any) (faults Faults) {
	err := r.validate.Struct(target)
	found := validator.ValidationErrors{}
	if err != nil && !errors.As(err, &found) {
		faults.Add("", "%v", err)
	}
	for _, f := range found {
		_, path, _ := strings.Cut(f.Namespace(), ".")
		path = strings.ReplaceAll(path, embedded+".", "")
		fault := Fault{Path: path, Message: r.message(f)}
		if f.Tag() == "ltefield" {
			fault.Against = strings.TrimSuffix(path, f.Field()) + strings.ToLower(f.Param())
		}
		faults = append(faults, fault)
	}
	return faults
}

func (r *Rules) message(f validator.FieldError) string {
	if check, ok := r.checks[f.Tag()]; ok {
		return strings.ReplaceAll(check.Fault, "%q", fmt.Sprintf("%q", f.Value()))
	}
	switch f.Tag() {
	case "required", "required_without", "min":
		if hint := r.missing[f.StructField()]; hint != "" {
			return "is missing: " + hint
		}
		return "is missing"
	case "gte":
		return fmt.Sprintf("is %v: give at least %s", f.Value(), f.Param())
	case "gt":
		return fmt.Sprintf("is %v: give more than %s", f.Value(), f.Param())
	case "lte":
		return fmt.Sprintf("is %v: give at most %s", f.Value(), f.Param())
	case "ltefield":
		other := strings.ToLower(f.Param())
		return fmt.Sprintf("is %v, above %s: lower it, or raise %s", f.Value(), other, other)
	case "max":
		return "is too long: give at most " + f.Param()
	case "iso4217":
		return fmt.Sprintf("got %q, want a currency by its ISO 4217 code, such as EUR", f.Value())
	case "oneof":
		return fmt.Sprintf("got %q, want one of %s", f.Value(), strings.ReplaceAll(f.Param(), " ", ", "))
	default: // a tag that has no message
		return fmt.Sprintf("breaks the rule %s=%s", f.Tag(), f.Param())
	}
}
