package searchattr_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// temporal is a fake Temporal namespace with search attributes. Its calls return the errors that a test sets.
type temporal struct {
	operatorservice.OperatorServiceClient
	mu         sync.Mutex
	has        map[string]enums.IndexedValueType
	list       []error // results of the next lists, before the namespace's own
	count      error
	namespaces []string // the namespaces that were requested
	add        []error  // results of the next registrations, before the namespace's own
	added      int
	onWait     func() // called at each wait
}

func (f *temporal) waited(error) {
	if f.onWait != nil {
		f.onWait()
	}
}

func (f *temporal) OperatorService() operatorservice.OperatorServiceClient { return f }

func (f *temporal) ListSearchAttributes(_ context.Context, in *operatorservice.ListSearchAttributesRequest,
	_ ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.namespaces = append(f.namespaces, in.GetNamespace())
	if len(f.list) > 0 {
		err := f.list[0]
		f.list = f.list[1:]
		return nil, err
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: f.has}, nil
}

func (f *temporal) CountWorkflow(_ context.Context,
	in *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, _, _ := strings.Cut(in.GetQuery(), " ")
	if _, ok := f.has[name]; !ok {
		return nil, serviceerror.NewInvalidArgumentf("column name '%s' is not a valid search attribute", name)
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, f.count
}

func (f *temporal) set(has map[string]enums.IndexedValueType) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.has = has
}

// keywords returns all of our attributes except the named ones, and one foreign attribute.
func keywords(without ...string) map[string]enums.IndexedValueType {
	out := map[string]enums.IndexedValueType{"CustomerId": enums.INDEXED_VALUE_TYPE_INT}
	for _, name := range workflows.SearchAttributes {
		if !slices.Contains(without, name) {
			out[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	return out
}

// await runs Await with a check each millisecond. It also returns the reasons of the waits and the log.
func await(ctx context.Context, f *temporal) (waits []error, log string, err error) {
	var written testkit.Buffer
	err = searchattr.Await(ctx, searchattr.Options{Temporal: f, Namespace: "edge", Every: time.Millisecond,
		Logger:  slog.New(slog.NewTextHandler(&written, nil)),
		Waiting: func(why error) { waits = append(waits, why); f.waited(why) }})
	return waits, written.String(), err
}

func denied() error { return serviceerror.NewPermissionDenied("not you", "") }

// A worker that sets the attributes waits for the missing ones. The worker reports the missing attributes and the
// command that registers them.
func TestAwaitNamesWhatIsMissing(t *testing.T) {
	wrong := keywords()
	wrong["LiqoProvider"] = enums.INDEXED_VALUE_TYPE_TEXT
	for name, c := range map[string]struct {
		has  map[string]enums.IndexedValueType
		list []error
		says string // empty: Await does not wait
	}{
		"all there": {has: keywords()},
		"none there": {says: "temporal setup, or: temporal operator search-attribute create --namespace edge " +
			"--name LiqoGroup --type Keyword --name LiqoInstance --type Keyword --name LiqoProvider --type Keyword"},
		"one missing": {has: keywords("LiqoProvider"),
			says: "create --namespace edge --name LiqoProvider --type Keyword"},
		"one of another type":     {has: wrong, says: "LiqoProvider (is Text, not Keyword)"},
		"may not list, all there": {has: keywords(), list: []error{denied()}},
		"cannot list, all there":  {has: keywords(), list: []error{serviceerror.NewUnimplemented("no such thing")}},
		"may not list, one missing": {has: keywords("LiqoGroup"), list: []error{denied()},
			says: "create --namespace edge --name LiqoGroup --type Keyword"},
		"no answer at first": {has: keywords(), list: []error{serviceerror.NewUnavailable("starting"),
			serviceerror.NewUnavailable("starting")}, says: "starting"},
		"no namespace at first": {has: keywords(), list: []error{serviceerror.NewNamespaceNotFound("edge")}, says: "edge"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &temporal{has: c.has, list: c.list}
			f.onWait = func() { f.set(keywords()) } // an administrator registers them during the wait
			waits, log, err := await(t.Context(), f)
			require.NoError(t, err)
			require.NotContains(t, f.namespaces, "default")
			if c.says == "" {
				require.Empty(t, waits)
				require.Empty(t, log)
				return
			}
			require.ErrorContains(t, waits[0], c.says)
			require.Equal(t, len(c.list) == 0 || strings.Contains(c.says, "create"),
				errors.Is(waits[0], searchattr.ErrNotRegistered))
			require.Equal(t, 1, strings.Count(log, "level=WARN"), "one line for one reason: %s", log)
		})
	}
}

// When Temporal refuses the check, Await fails, because waiting would not help.
func TestAwaitFailsWhereTemporalRefuses(t *testing.T) {
	for says, f := range map[string]*temporal{
		"not you":      {has: keywords(), list: []error{denied()}, count: denied()},
		"out of order": {has: keywords(), list: []error{serviceerror.NewInternal("out of order")}},
	} {
		waits, _, err := await(t.Context(), f)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "--search-attributes=false")
		require.Empty(t, waits)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &temporal{onWait: cancel}
	waits, _, err := await(ctx, f)
	require.ErrorIs(t, err, searchattr.ErrNotRegistered)
	require.Len(t, waits, 1)
}

func (f *temporal) AddSearchAttributes(_ context.Context, in *operatorservice.AddSearchAttributesRequest,
	_ ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added++
	if len(f.add) > 0 {
		err := f.add[0]
		f.add = f.add[1:]
		return nil, err
	}
	if f.has == nil {
		f.has = map[string]enums.IndexedValueType{}
	}
	maps.Copy(f.has, in.GetSearchAttributes())
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func TestRegisterAddsMissingAttributes(t *testing.T) {
	wrong := keywords("LiqoGroup")
	wrong["LiqoProvider"] = enums.INDEXED_VALUE_TYPE_TEXT
	for name, c := range map[string]struct {
		has       map[string]enums.IndexedValueType
		list, add []error
		made      []string
		added     int
		says      string
	}{
		"none there":      {made: workflows.SearchAttributes, added: 1},
		"one missing":     {has: keywords("LiqoProvider"), made: []string{"LiqoProvider"}, added: 1},
		"all there":       {has: keywords()},
		"of another type": {has: wrong, says: "LiqoProvider (is Text, not Keyword)"},
		"a new namespace": {list: []error{serviceerror.NewNamespaceNotFound("edge")}, made: workflows.SearchAttributes,
			added: 1},
		"not yet": {add: []error{serviceerror.NewUnavailable("not yet")}, made: workflows.SearchAttributes,
			added: 2},
		"may not":          {add: []error{denied()}, added: 1, says: "an administrator must run: temporal operator"},
		"may not list":     {list: []error{denied()}, has: keywords()},
		"no room for more": {add: []error{serviceerror.NewInvalidArgument("no room")}, added: 1, says: "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &temporal{has: c.has, list: c.list, add: c.add}
			made, err := searchattr.Register(t.Context(), f, "edge")
			require.Equal(t, c.added, f.added)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.made, made)
		})
	}
}
