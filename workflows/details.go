package workflows

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// describeGroup is the Markdown that the Temporal UI shows beside a running node group.
func describeGroup(s fleet.Snapshot) string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("**%s**: target %d, min %d, max %d\n", s.Group, s.Target, s.Min, s.Max))
	if len(s.Instances) == 0 {
		return b.String()
	}
	b.WriteString("\n| instance | phase | provider | attempt | since | why |\n|---|---|---|---|---|---|\n")
	for _, i := range s.Instances {
		why := i.Stuck
		if i.Failure != nil {
			why = string(i.Failure.Code) + ": " + i.Failure.Message
		}
		b.WriteString(fmt.Sprintf("| %s | %s | %s | %d | %s | %s |\n", i.Name, i.Phase, i.Provider, i.Attempt, i.Since.UTC().Format("15:04:05"), why))
	}
	return b.String()
}

// describeProvider is the same for a provider.
func describeProvider(p fleet.ProviderState) string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("peering with **%s**: %s since %s, %d holds\n", p.ID, p.Phase, p.Since.UTC().Format("15:04:05"), p.Live()))
	if p.Failure != nil {
		b.WriteString(fmt.Sprintf("\nlast failure: %s: %s\n", p.Failure.Code, p.Failure.Message))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Holds)) {
		b.WriteString(fmt.Sprintf("- %s: %s\n", key, p.Holds[key].State))
	}
	return b.String()
}

func applicationType(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type()
	}
	return ""
}
