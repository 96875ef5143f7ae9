package searchattr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Temporal is the part of the SDK's client that this package uses.
type Temporal interface {
	OperatorService() operatorservice.OperatorServiceClient
	CountWorkflow(ctx context.Context,
		request *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error)
}

// checkTimeout limits the duration of one check.
const checkTimeout = 5 * time.Second

// finding lists the attributes that the namespace lacks.
type finding struct {
	missing []string
	wrong   []string // registered, but not as a Keyword
}

func (f finding) complete() bool { return len(f.missing)+len(f.wrong) == 0 }

func (f finding) String() string {
	return strings.Join(append(f.missing[:len(f.missing):len(f.missing)], f.wrong...), ", ")
}

// command returns the command that registers the missing attributes. If only attributes of a wrong type were found, it
// returns a text for the operator. The operator must decide about these attributes, because they may belong to another
// application.
func (f finding) command(namespace string) string {
	if len(f.missing) == 0 {
		return "an attribute of another type already has this name: see temporal operator search-attribute list " +
			"--namespace " + namespace
	}
	return "temporal operator search-attribute create --namespace " + namespace + " --name " + strings.Join(f.missing,
		" --type Keyword --name ") + " --type Keyword"
}

// findMissing compares the namespace's attributes with the attributes that our workflows set. If the account may not
// list search attributes, as on some managed services, findMissing calls the function count.
func findMissing(ctx context.Context, t Temporal, namespace string) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	has, err := t.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	switch codeOf(err) {
	case codes.OK:
	case codes.PermissionDenied, codes.Unimplemented:
		return count(ctx, t, namespace)
	default:
		return finding{}, fmt.Errorf("list search attributes of namespace %s: %w", namespace, err)
	}
	var f finding
	for _, name := range workflows.SearchAttributes {
		switch as, ok := has.GetCustomAttributes()[name]; {
		case !ok:
			f.missing = append(f.missing, name)
		case as != enums.INDEXED_VALUE_TYPE_KEYWORD:
			f.wrong = append(f.wrong, fmt.Sprintf("%s (is %s, not Keyword)", name, as))
		}
	}
	return f, nil
}

// count finds the missing attributes by one query for each attribute: Temporal refuses a query with an unknown
// attribute, and every worker has the permission to query. count cannot distinguish a Keyword from most other types.
func count(ctx context.Context, t Temporal, namespace string) (finding, error) {
	var f finding
	for _, name := range workflows.SearchAttributes {
		_, err := t.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: name +
			" IN ('-')"})
		switch codeOf(err) {
		case codes.OK:
		case codes.InvalidArgument:
			f.missing = append(f.missing, name)
		default:
			return finding{}, fmt.Errorf("count workflows by %s in namespace %s: %w", name, namespace, err)
		}
	}
	return f, nil
}

// noAnswer reports whether the error means that Temporal cannot be reached, or does not have the namespace yet.
func noAnswer(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.NotFound:
		return true
	default:
		return false
	}
}

func codeOf(err error) codes.Code { return serviceerror.ToStatus(err).Code() }

// Missing returns the search attributes that the namespace lacks or has with a type other than Keyword.
func Missing(ctx context.Context, t Temporal, namespace string) ([]string, error) {
	f, err := findMissing(ctx, t, namespace)
	return slices.Concat(f.missing, f.wrong), err
}
