package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// tagSay marks complaints that bring their own sentence, from the rules in rules.go.
const tagSay = "say"

// validate checks the struct tags of Config and fleet.GroupSpec and the rules of rules.go.
func validate(cfg Config) []*FieldError {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	rules := map[string]validator.Func{
		"groupid": func(fl validator.FieldLevel) bool { return fleet.ValidGroupID(fl.Field().String()) },
		"hub":     func(fl validator.FieldLevel) bool { return fleet.ValidHub(fl.Field().String()) },
	}
	for tag, rule := range rules {
		if err := v.RegisterValidation(tag, rule); err != nil { // the tags above are well formed
			return whole("register rule %s: %v", tag, err)
		}
	}
	v.RegisterStructValidation(checkConfig, Config{})
	v.RegisterStructValidation(checkGroup, fleet.GroupSpec{})

	var fields validator.ValidationErrors
	if err := v.Struct(cfg); err == nil {
		return nil
	} else if !errors.As(err, &fields) {
		return whole("check node groups: %v", err)
	}
	complaints := make([]*FieldError, 0, len(fields))
	for _, f := range fields {
		complaints = append(complaints, translate(f))
	}
	return complaints
}

// translate turns a validator's verdict into a complaint.
func translate(f validator.FieldError) *FieldError {
	path := strings.TrimPrefix(f.Namespace(), "Config.")
	c := &FieldError{Path: path}
	switch f.Tag() {
	case tagSay:
		c.Message = f.Param()
		if budgets, ok := strings.CutSuffix(path, ".total"); ok { // it is measured against the other budgets
			c.follows = budgets
		}
	case "required", "min":
		c.Message = "is missing: " + missing[f.StructField()]
	case "groupid":
		c.Message = fmt.Sprintf("%q cannot name a group: use at most %d lower-case letters, digits and dashes, "+
			"with a letter or digit at both ends", f.Value(), fleet.MaxGroupID)
	case "hub":
		c.Message = fmt.Sprintf("%q cannot name a hub: use at most %d lower-case letters, digits and dashes, "+
			"with a letter or digit at both ends", f.Value(), fleet.MaxHub)
	case "gte":
		c.Message = fmt.Sprintf("is %v: give at least %s", f.Value(), f.Param())
	case "lte":
		c.Message = fmt.Sprintf("is %v: give at most %s", f.Value(), f.Param())
	case "ltefield":
		other := strings.ToLower(f.Param())
		c.follows = strings.TrimSuffix(path, f.Field()) + other
		c.Message = fmt.Sprintf("is %v, above %s: lower it, or raise %s", f.Value(), other, other)
	default: // a tag added without a sentence
		c.Message = fmt.Sprintf("breaks the rule %s=%s", f.Tag(), f.Param())
	}
	return c
}

// missing says what to give where something required is absent.
var missing = map[string]string{
	"ID":         "give the group a name, which must not change later",
	"NodeGroups": "list at least one node group",
	"Shape":      "give cpu, memory and pods, which is what each node has",
}
