package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// caGroup is the state of a node group in the status ConfigMap of Cluster Autoscaler 1.30 and later (CA
// clusterstate/api/types.go).
type caGroup struct {
	Name   string `json:"name"`
	Health struct {
		MaxSize *int `json:"maxSize"`
	} `json:"health"`
	ScaleUp struct {
		Status      string `json:"status"`
		BackoffInfo struct {
			ErrorCode    string `json:"errorCode"`
			ErrorMessage string `json:"errorMessage"`
		} `json:"backoffInfo"`
	} `json:"scaleUp"`
}

// backoff returns the reason for which CA backs off from the group, or "" if CA does not back off.
func (g caGroup) backoff() string {
	if g.ScaleUp.Status != "Backoff" {
		return ""
	}
	why := strings.TrimSpace(g.ScaleUp.BackoffInfo.ErrorCode + " " + g.ScaleUp.BackoffInfo.ErrorMessage)
	if why == "" {
		return "an earlier scale-up failed"
	}
	return why
}

// readStatus parses CA's status ConfigMap. It returns no groups for an empty text.
func readStatus(text string) (map[string]caGroup, error) {
	var status struct {
		NodeGroups []caGroup `json:"nodeGroups"`
	}
	if err := yaml.Unmarshal([]byte(text), &status); err != nil {
		return nil, fmt.Errorf("the status of Cluster Autoscaler cannot be read: %w", err)
	}
	groups := make(map[string]caGroup, len(status.NodeGroups))
	for _, g := range status.NodeGroups {
		groups[g.Name] = g
	}
	return groups, nil
}

// newestMessage returns the reason and message of CA's newest event about the pod.
func newestMessage(events []corev1.Event) string {
	var last *corev1.Event
	for n := range events {
		e := &events[n]
		if e.Source.Component != "cluster-autoscaler" && e.ReportingController != "cluster-autoscaler" {
			continue
		}
		if last == nil || !e.LastTimestamp.Before(&last.LastTimestamp) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return last.Reason + ": " + last.Message
}
