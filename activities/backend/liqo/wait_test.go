package liqo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func waitingFor(message string, err error) poll {
	return func(context.Context) (bool, string, error) { return false, message, err }
}

func TestUntilReportsWhyItWasCancelled(t *testing.T) {
	t.Parallel()
	reason := errors.New("an operator cancelled it")
	ctx, cancel := context.WithCancelCause(t.Context())
	var told []string
	w := &waiter{progress: func(_ backend.Stage, message string) {
		told = append(told, message)
		if message == "the nonce" {
			cancel(reason)
		}
	}}
	err := w.until(ctx, backend.StageNonce, waitingFor("the nonce", nil))
	var stage *backend.StageError
	require.ErrorAs(t, err, &stage)
	require.Equal(t, backend.StageNonce, stage.Stage)
	require.Equal(t, "the nonce", stage.Message)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	require.Equal(t, []string{"looking", "the nonce"}, told)
}

// The context of a wait ends, and the interrupted request returns the same reason as the context. The error contains
// this reason only once.
func TestUntilReportsItsReasonOnce(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hanging }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hanging) })
	provider, err := newProviderClient(&rest.Config{Host: server.URL,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	reason := errors.New("the pass is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), noAnswer+noAnswer/2, reason)
	defer cancel()
	err = (&waiter{}).until(ctx, backend.StageAPIServer, func(ctx context.Context) (bool, string, error) {
		return false, "", accessError("list namespaces", provider.List(ctx, &corev1.NamespaceList{}))
	})
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.Equal(t, 1, strings.Count(err.Error(), reason.Error()), err)
	require.ErrorContains(t, err, "cannot list namespaces: ")
	require.ErrorContains(t, err, "no answer")
}

func TestUntilReturnsFinalErrorsImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testUntilVerdicts)
}

func testUntilVerdicts(t *testing.T) {
	for _, kind := range []error{backend.ErrDenied, backend.ErrInvalid, backend.ErrShort, backend.ErrConflict,
		backend.ErrNotPeered, backend.ErrInUse} {
		err := (&waiter{}).until(prompt(t), backend.StageTenant, waitingFor("", errorf(kind, "because of %s", "reasons")))
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.ErrorIs(t, err, kind)
		require.Equal(t, "waiting for tenant: because of reasons: "+kind.Error(), err.Error(), "each thing is said once")

		err = (&waiter{stubborn: true}).until(soon(t), backend.StageTenantGone, waitingFor("", errorf(kind, "because")))
		require.ErrorIs(t, err, kind)
		require.Equal(t, kind != backend.ErrInUse, errors.Is(err, context.DeadlineExceeded),
			"taking back gives up only on ErrInUse: %v", err)
	}
}

func TestUntilToleratesShortSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testUntilUnreachable)
}

func testUntilUnreachable(t *testing.T) {
	unreachable := errorf(backend.ErrUnreachable, "connection refused")
	began := time.Now()
	err := (&waiter{patience: 100 * time.Millisecond}).until(prompt(t), backend.StageAPIServer,
		waitingFor("", unreachable))
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond, "one failure is not enough")

	// The field patience is the time for which failures are tolerated. A success between two failures restarts this
	// time.
	looks := 0
	err = (&waiter{patience: 150 * time.Millisecond}).until(prompt(t), backend.StageAPIServer,
		func(context.Context) (bool, string, error) {
			if looks++; looks%2 == 1 {
				return false, "", unreachable
			}
			return looks > 6, "answers", nil
		})
	require.NoError(t, err)
}

// A check hangs, because a cluster never answers. The wait still reports progress, in the caller's goroutine.
func TestUntilReportsProgressDuringACheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testUntilTellsDuringLook)
}

func testUntilTellsDuringLook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	w := &waiter{progress: func(backend.Stage, string) {
		if told++; told == 2 {
			cancel()
		}
	}}
	err := w.until(ctx, backend.StageAPIServer, func(ctx context.Context) (bool, string, error) {
		<-ctx.Done()
		return false, "", ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, backend.ErrUnreachable)
	require.Equal(t, 2, told)
}

// An API server that has just started answers 403 to every request until it has read its roles. The wait tolerates
// this. If the 403 lasts longer, the permission is really missing, and the wait ends long before its context does.
func TestUntilToleratesAShortRefusal(t *testing.T) {
	t.Parallel()
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		errors.New(`RBAC: role "ours" not found`))
	const patience = 10 * time.Second
	for name, refusal := range map[string]error{"the provider's": accessError("look", no), "our own cluster's": no} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				refusedFor := func(lasts time.Duration) (time.Duration, error) {
					began := time.Now()
					err := (&waiter{refusal: patience}).until(ctx, backend.StageAPIServer,
						func(context.Context) (bool, string, error) {
							if time.Since(began) < lasts {
								return false, "", refusal
							}
							return true, "", nil
						})
					return time.Since(began), err
				}
				_, err := refusedFor(patience - longestPause)
				require.NoError(t, err)

				took, err := refusedFor(time.Minute)
				require.ErrorContains(t, err, "not found")
				require.GreaterOrEqual(t, took, patience)
				require.LessOrEqual(t, took, patience+longestPause)
			})
		})
	}
}
