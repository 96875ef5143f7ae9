package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
)

// These constants are the exit codes of a command that fails because of Temporal. If a command fails for another
// reason, the exit code is 1.
const (
	ExitUnreachable = 3 // Temporal does not answer at the address, or cannot read its database
	ExitRefused     = 4 // TLS, a certificate or a key is wrong, or a permission is missing
	ExitNamespace   = 5 // the namespace does not exist
	ExitAttributes  = 6 // search attributes are missing, or of another type
)

// Failure is an error about Temporal with an exit code. Its text contains the remedy.
type Failure struct {
	Code  int
	text  string
	cause error
}

// Error implements error.
func (f *Failure) Error() string { return f.text }

// Unwrap returns ErrDatabase, or nil.
func (f *Failure) Unwrap() error { return f.cause }

func fail(code int, format string, args ...any) *Failure {
	return &Failure{Code: code, text: fmt.Sprintf(format, args...)}
}

// ExitCode returns the exit code for an error. It returns 0 if the error is nil.
func ExitCode(err error) int {
	var f *Failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.Code
	case errors.Is(err, searchattr.ErrNotRegistered):
		return ExitAttributes
	default:
		return 1
	}
}

// Explain converts an error of a request to Temporal into a Failure with the cause and the remedy. If Temporal did
// not respond, Explain connects to Temporal again to find the step that fails. If err is nil or Explain does not
// recognize it, Explain returns err unchanged.
func (t *Target) Explain(ctx context.Context, err error) error {
	var known *Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	var noNamespace *serviceerror.NamespaceNotFound
	switch code := codeOf(err); {
	case strings.Contains(err.Error(), httpAnswer):
		return t.notTemporal(err)
	case errors.As(err, &noNamespace):
		if why := t.cannotRead(ctx); why != nil {
			return t.withoutDatabase(why)
		}
		return t.noNamespace()
	case code == codes.PermissionDenied, code == codes.Unauthenticated:
		return fail(ExitRefused, "Temporal at %s refuses us in namespace %s: %v: check the client certificate or the API "+
			"key, and their permissions", t.Address, t.Namespace, err)
	case code == codes.Unavailable, code == codes.DeadlineExceeded:
		if why := t.reach(ctx, true); why != nil {
			return why
		}
		if why := t.cannotRead(ctx); why != nil {
			return t.withoutDatabase(why)
		}
		if proxy := t.proxy(); proxy != "" {
			return fail(ExitUnreachable, "Temporal at %s does not answer through the HTTP proxy %s (%s): %s", t.Address, proxy,
				shorten.Words(err.Error(), maxAnswer), withProxy)
		}
		return fail(ExitUnreachable, "Temporal at %s accepts connections and does not answer: %v: try again, and read "+
			"Temporal's log", t.Address, err)
	}
	return err
}

// httpAnswer is part of the text of grpc-go's error when a server answers in HTTP but not in gRPC.
const httpAnswer = "unexpected HTTP status code received from server"

// maxAnswer is the maximum number of characters that Explain quotes from the answer of a server that is not Temporal.
const maxAnswer = 200

// withProxy is the remedy if a proxy is between us and Temporal.
const withProxy = "exempt Temporal's host from it with NO_PROXY, or look at the proxy's log"

// notTemporal returns the Failure when the server that has answered is not a Temporal frontend.
func (t *Target) notTemporal(err error) *Failure {
	if proxy := t.proxy(); proxy != "" {
		return fail(ExitUnreachable, "the HTTP proxy %s answers in place of Temporal at %s (%s): %s", proxy, t.Address,
			shorten.Words(err.Error(), maxAnswer), withProxy)
	}
	return fail(ExitUnreachable, "the server at %s is no Temporal frontend (%s): %s", t.Address,
		shorten.Words(err.Error(), maxAnswer), whereFrom)
}

func (t *Target) noNamespace() *Failure {
	return fail(ExitNamespace, "Temporal at %s has no namespace %s: create it with liqo-autoscaler temporal setup, or "+
		"give another with --temporal-namespace or TEMPORAL_NAMESPACE", t.Address, t.Namespace)
}

// codeOf returns the gRPC code of the error or of an error that it wraps.
func codeOf(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return serviceerror.ToStatus(err).Code()
}
