package searchattr

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// settleTimeout limits the time that Register waits for a new namespace or attribute to become visible in all services
// of Temporal. settleEvery is the interval between two checks.
const (
	settleTimeout = time.Minute
	settleEvery   = 500 * time.Millisecond
)

// Register registers the attributes that the namespace lacks, and returns their names once Temporal lists them. It
// blocks for at most a minute, and is idempotent. It returns ErrNotRegistered if this account may not register
// attributes. It also returns ErrNotRegistered if an attribute exists with another type, because that attribute
// belongs to another application.
func Register(ctx context.Context, t Temporal, namespace string) (made []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		found, err := findMissing(ctx, t, namespace)
		switch {
		case err != nil && codeOf(err) != codes.NotFound: // NotFound: a new namespace
			return made, err
		case err == nil && len(found.wrong) > 0:
			return made, fmt.Errorf("%w: %s; %s", ErrNotRegistered, found, finding{wrong: found.wrong}.command(namespace))
		case err == nil && found.complete():
			return made, nil
		case err == nil && made == nil:
			added, err := add(ctx, t, namespace, found.missing)
			if err != nil {
				return nil, err
			}
			made = added
		}
		if !wait.For(ctx, settleEvery) {
			return made, fmt.Errorf("register search attributes in namespace %s: Temporal does not list them after %s",
				namespace, settleTimeout)
		}
	}
}

// add sends one request that registers the names, and returns the names. It returns nil without an error if the caller
// should check again.
func add(ctx context.Context, t Temporal, namespace string, missing []string) ([]string, error) {
	request := &operatorservice.AddSearchAttributesRequest{Namespace: namespace,
		SearchAttributes: map[string]enums.IndexedValueType{}}
	for _, name := range missing {
		request.SearchAttributes[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := t.OperatorService().AddSearchAttributes(ctx, request)
	switch codeOf(err) {
	case codes.OK:
		return missing, nil
	case codes.AlreadyExists, codes.NotFound, codes.Unavailable: // another process did; the namespace is new
		return nil, nil
	case codes.PermissionDenied, codes.Unimplemented:
		f := finding{missing: missing}
		return nil, fmt.Errorf("%w: %s: this account may not register them (%w); an administrator must run: %s",
			ErrNotRegistered, f, err, f.command(namespace))
	default:
		return nil, fmt.Errorf("register search attributes in namespace %s: %w", namespace, err)
	}
}
