package microvm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Identify returns the host group's name, after the host has confirmed that it has the group.
func (b *Backend) Identify(ctx context.Context, credentials fleet.Credentials) (string, error) {
	h, err := b.open(ctx, credentials)
	if err != nil {
		return "", err
	}
	group, err := h.group(ctx, maxIdentity)
	switch {
	case errors.Is(err, backend.ErrCredentials):
		return "", fmt.Errorf("%w: %w", err, backend.ErrInvalid)
	case err != nil:
		return "", err
	case group == nil:
		return "", errorf(backend.ErrInvalid, "host %s has no host group %s", h.at.Host, h.HostGroup)
	}
	return group.Name, nil
}

// Establish checks the host once and records the result.
func (b *Backend) Establish(ctx context.Context, p fleet.Provider, progress backend.Progress) error {
	w := waiter{progress: progress, patience: b.config.UnreachableAfter}
	return w.until(ctx, backend.StageAPIServer, func(ctx context.Context) (bool, string, error) {
		if p.Network != nil {
			return false, "", errorf(backend.ErrInvalid, "a host has no network of its own: remove network from the offer")
		}
		h, record, err := b.known(ctx, p)
		if err != nil {
			return false, "", err
		}
		if refusal, err := b.refusal(ctx, h, record); err != nil || refusal != nil {
			return false, "", cmp.Or(err, refusalError(refusal))
		}
		if _, err := b.machines(ctx, h, ""); err != nil { // the host must also answer this request
			return false, "", err
		}
		switch {
		case record == nil:
			err = b.newRecord(ctx, peeringName(p.ID), p, b.ours(), map[string]string{annotationPin: h.pin})
			return err == nil, "", err
		case !b.isOurs(record): // another installation owns the record
			return true, "", nil
		}
		err = b.annotate(ctx, record, map[string]any{backend.AnnotationCredentials: backend.CredentialsText(p.Credentials),
			annotationPin: h.pin, annotationRefusal: nil}, map[string]any{backend.LabelRefused: nil})
		return err == nil, "", err
	})
}

// known opens the provider's host and reads the peering's record. It returns ErrInvalid when this host is not the
// host that is pinned in the record.
func (b *Backend) known(ctx context.Context, p fleet.Provider) (*host, *corev1.ConfigMap, error) {
	record, err := b.record(ctx, peeringName(p.ID))
	if err != nil {
		return nil, nil, err
	}
	h, err := b.open(ctx, p.Credentials)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case h.HostGroup != p.ID:
		return nil, nil, errorf(backend.ErrInvalid, "the credentials lead to %s instead of %s", h.HostGroup, p.ID)
	case record != nil && record.Annotations[annotationPin] != "" && record.Annotations[annotationPin] != h.pin:
		return nil, nil, errorf(backend.ErrInvalid,
			"provider %s is known with another url or caData; if it is the same host, "+
				"run liqo-autoscaler offers repin %s", p.ID, p.ID)
	}
	return h, record, nil
}

// Repin removes the pinned host of a provider, so that the next Establish accepts the host that the credentials name.
// It returns false when no host is pinned.
func (b *Backend) Repin(ctx context.Context, provider string) (bool, error) {
	record, err := b.record(ctx, peeringName(provider))
	if err != nil || record == nil || !b.isOurs(record) || record.Annotations[annotationPin] == "" {
		return false, err
	}
	return true, b.annotate(ctx, record, map[string]any{annotationPin: nil}, nil)
}

// refusal returns the present refusal of the host. If the record exists but the host group does not, the host group
// was removed. refusal saves this refusal in the record.
func (b *Backend) refusal(ctx context.Context, h *host, record *corev1.ConfigMap) (*fleet.ProviderRefusal, error) {
	if recorded := refusalIn(record); recorded != nil {
		return recorded, nil
	}
	group, err := h.group(ctx, maxAnswer)
	switch {
	case err != nil:
		return nil, err
	case group != nil && group.Refuses != "":
		return &fleet.ProviderRefusal{Kind: group.Refuses, Reason: group.Reason}, nil
	case group != nil || record == nil || record.Labels[backend.LabelRefused] != "" || !b.isOurs(record):
		return nil, nil
	}
	recorded := &fleet.ProviderRefusal{Kind: fleet.RefusingRemoved, Reason: "its host has no host group " + h.HostGroup,
		Until: time.Now().Add(b.config.RefusedFor).UTC()}
	text, err := json.Marshal(recorded)
	if err == nil {
		err = b.annotate(ctx, record, map[string]any{annotationRefusal: string(text)}, nil)
	}
	return recorded, err
}

// refusalIn returns the refusal in the record, until it expires.
func refusalIn(record *corev1.ConfigMap) *fleet.ProviderRefusal {
	var recorded fleet.ProviderRefusal
	if record == nil || json.Unmarshal([]byte(record.Annotations[annotationRefusal]), &recorded) != nil ||
		recorded.Over(time.Now()) {
		return nil
	}
	return &recorded
}

func refusalError(by *fleet.ProviderRefusal) error {
	if by == nil {
		return nil
	}
	return &backend.RefusingError{ProviderRefusal: *by}
}

// Refusal queries the host once.
func (b *Backend) Refusal(ctx context.Context, p fleet.Provider) (*fleet.ProviderRefusal, error) {
	h, record, err := b.known(ctx, p)
	if err != nil {
		return nil, err
	}
	return b.refusal(ctx, h, record)
}

// Observe reads host group and machines once.
func (b *Backend) Observe(ctx context.Context, p fleet.Provider) (seen backend.Observation, err error) {
	h, record, err := b.known(ctx, p)
	if err != nil {
		return seen, err
	}
	group, err := h.group(ctx, maxAnswer)
	switch {
	case err != nil || record == nil:
		return seen, err
	case group == nil:
		return backend.Observation{Tenant: fleet.RefusingRemoved, Message: "its host has no host group " + p.ID}, nil
	}
	seen.Tenant, seen.Message = group.Refuses, group.Reason
	records, err := b.records(ctx, client.MatchingLabels{fleet.LabelMachineProvider: p.ID})
	if err != nil {
		return backend.Observation{}, err
	}
	machines, err := b.machines(ctx, h, "")
	if err != nil {
		return backend.Observation{}, err
	}
	for i := range records {
		r := &records[i]
		name, ok := attemptIn(r.Name)
		there := slices.ContainsFunc(machines, func(m machine) bool { return m.attempt == name })
		if ok && !there && b.isOurs(r) && r.Annotations[backend.AnnotationStamp] != "" {
			seen.Absent = append(seen.Absent, name)
		}
	}
	return seen, nil
}

// RemovePeering removes the record after the host has none of our machines.
func (b *Backend) RemovePeering(ctx context.Context, p fleet.Provider, progress backend.Progress) error {
	var refuses error
	err := waiter{progress: progress}.until(ctx, backend.StageTenantGone, func(ctx context.Context) (bool, string, error) {
		record, err := b.record(ctx, peeringName(p.ID))
		if err != nil {
			return false, "", err
		}
		if record == nil { // only the refusal is read, and the host need not answer
			if refusal, err := b.Refusal(ctx, p); err == nil {
				refuses = refusalError(refusal)
			}
			return true, "", nil
		}
		if !b.isOurs(record) {
			return true, "", nil
		}
		refusal, err := b.unused(ctx, p, record)
		if err != nil {
			return false, "", err
		}
		refuses = refusalError(refusal)
		if refusal == nil || refusal.Until.IsZero() {
			return false, "its record is being removed", nodes.DeleteThis(ctx, b.local, record)
		}
		if record.Labels[backend.LabelRefused] == "" {
			err = b.annotate(ctx, record, nil, map[string]any{backend.LabelRefused: string(refusal.Kind)})
		}
		return err == nil, "", err
	})
	return cmp.Or(err, refuses)
}

// unused returns ErrInUse while any installation has a record of a machine on the provider, or while one of our
// machines runs on the provider. Otherwise it returns the provider's refusal, or nil.
func (b *Backend) unused(ctx context.Context, p fleet.Provider, record *corev1.ConfigMap) (*fleet.ProviderRefusal,
	error) {
	records, err := b.records(ctx, client.MatchingLabels{fleet.LabelMachineProvider: p.ID})
	if err != nil {
		return nil, err
	}
	for i := range records {
		if _, ok := attemptIn(records[i].Name); ok {
			return nil, errorf(backend.ErrInUse, "ConfigMap %s/%s exists", b.config.Namespace, records[i].Name)
		}
	}
	if record.Labels[backend.LabelRefused] != "" {
		return refusalIn(record), nil
	}
	h, _, err := b.known(ctx, p)
	if err != nil {
		return nil, err
	}
	refusal, err := b.refusal(ctx, h, record)
	if err != nil || refusal != nil && !refusal.Until.IsZero() { // if the host group is gone, no machines exist
		return refusal, err
	}
	machines, err := b.machines(ctx, h, "")
	if err == nil && len(machines) > 0 {
		err = errorf(backend.ErrInUse, "machine %s is ours, but no record of it exists here: if it is not needed, remove it "+
			"on the host", machines[0].Hostname)
	}
	return refusal, err
}
