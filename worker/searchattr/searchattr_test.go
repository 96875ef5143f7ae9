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

// temporal is a namespace with search attributes, and with ways not to tell.
type temporal struct {
	operatorservice.OperatorServiceClient
	mu         sync.Mutex
	has        map[string]enums.IndexedValueType
	list       []error // answers to the next listings, before the namespace's own
	count      error
	namespaces []string // that were asked for
	asked      int
	add        []error // answers to the next registrations, before the namespace's own
	added      int
}

func (f *temporal) OperatorService() operatorservice.OperatorServiceClient { return f }

func (f *temporal) ListSearchAttributes(_ context.Context, in *operatorservice.ListSearchAttributesRequest,
	_ ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
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

func (f *temporal) questions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// keywords are all our attributes but those named, and one of somebody else's.
func keywords(without ...string) map[string]enums.IndexedValueType {
	out := map[string]enums.IndexedValueType{"CustomerId": enums.INDEXED_VALUE_TYPE_INT}
	for _, name := range workflows.SearchAttributes {
		if !slices.Contains(without, name) {
			out[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	return out
}

func options(f *temporal, mode searchattr.Mode) (searchattr.Options, *testkit.Buffer) {
	log := &testkit.Buffer{}
	return searchattr.Options{
		Temporal: f, Namespace: "edge", Mode: mode, Every: time.Millisecond, Retry: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

func denied() error { return serviceerror.NewPermissionDenied("not you", "") }

func TestOpen(t *testing.T) {
	wrong := keywords()
	wrong["LiqoProvider"] = enums.INDEXED_VALUE_TYPE_TEXT
	for _, c := range []struct {
		name       string
		has        map[string]enums.IndexedValueType
		list       []error
		count      error
		registered bool
		says       string // in the log with Auto, in the error with On; "" means that nobody has anything to say
	}{
		{name: "all there", has: keywords(), registered: true},
		{name: "none there", says: "create --namespace edge --name LiqoGroup --type Keyword " +
			"--name LiqoInstance --type Keyword --name LiqoProvider --type Keyword"},
		{name: "one missing", has: keywords("LiqoProvider"),
			says: "create --namespace edge --name LiqoProvider --type Keyword"},
		{name: "one of another type", has: wrong, says: "LiqoProvider (is Text, not Keyword)"},
		{name: "may not list, all there", has: keywords(), list: []error{denied()}, registered: true},
		{name: "cannot list, all there", has: keywords(),
			list: []error{serviceerror.NewUnimplemented("no such thing")}, registered: true},
		{name: "may not list, two missing", has: keywords("LiqoGroup", "LiqoProvider"), list: []error{denied()},
			says: "create --namespace edge --name LiqoGroup --type Keyword --name LiqoProvider --type Keyword"},
		{name: "may do nothing", has: keywords(), list: []error{denied()}, count: denied(), says: "not you"},
		{name: "a strange answer", has: keywords(), list: []error{serviceerror.NewInternal("out of order")},
			says: "out of order"},
		{name: "no answer at first", has: keywords(), list: []error{serviceerror.NewUnavailable("starting"),
			serviceerror.NewNamespaceNotFound("edge"), context.DeadlineExceeded}, registered: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, mode := range []searchattr.Mode{"", searchattr.Auto, searchattr.On} {
				f := &temporal{has: c.has, list: slices.Clone(c.list), count: c.count}
				o, log := options(f, mode)
				g, err := searchattr.Open(t.Context(), o)
				require.NotContains(t, f.namespaces, "default")
				if mode == searchattr.On && c.says != "" {
					require.ErrorContains(t, err, c.says)
					require.Equal(t, c.list == nil || strings.Contains(c.says, "create"), errors.Is(err, searchattr.ErrNotRegistered))
					continue
				}
				require.NoError(t, err)
				require.Equal(t, c.registered, g.Registered())
				require.Contains(t, log.String(), c.says)
				require.Equal(t, c.says != "", strings.Count(log.String(), "listed without") == 1, "one warning: %s", log)
			}
		})
	}
}

func TestOffAsksNobody(t *testing.T) {
	f := &temporal{has: keywords()}
	o, log := options(f, searchattr.Off)
	g, err := searchattr.Open(t.Context(), o)
	require.NoError(t, err)
	g.Watch(t.Context())
	require.False(t, g.Registered())
	require.Zero(t, f.questions())
	require.Empty(t, log.String())
}

func TestOpenEndsWithItsContext(t *testing.T) {
	f := &temporal{list: make([]error, 1000)}
	for i := range f.list {
		f.list[i] = serviceerror.NewUnavailable("down")
	}
	ctx, cancel := context.WithCancel(t.Context())
	o, _ := options(f, searchattr.Auto)
	ended := make(chan error, 1)
	go func() { _, err := searchattr.Open(ctx, o); ended <- err }()
	require.Eventually(t, func() bool { return f.questions() > 1 }, 2*time.Minute, time.Millisecond)
	cancel()
	require.Error(t, <-ended)
}

// Attributes that come and go are noticed, and each change is told once.
func TestWatch(t *testing.T) {
	f := &temporal{}
	o, log := options(f, searchattr.Auto)
	g, err := searchattr.Open(t.Context(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { g.Watch(ctx) })
	for _, want := range []bool{true, false, true} {
		var has map[string]enums.IndexedValueType
		if want {
			has = keywords()
		}
		f.set(has)
		require.Eventually(t, func() bool { return g.Registered() == want }, 2*time.Minute, time.Millisecond)
		seen := f.questions()
		require.Eventually(t, func() bool { return f.questions() > seen+3 }, 2*time.Minute, time.Millisecond)
	}
	f.mu.Lock()
	f.list = []error{serviceerror.NewUnavailable("down"), denied()}
	f.count = denied()
	f.mu.Unlock()
	seen := f.questions()
	require.Eventually(t, func() bool { return f.questions() > seen+3 }, 2*time.Minute, time.Millisecond)
	require.True(t, g.Registered(), "no answer changes nothing")
	cancel()
	done.Wait()
	require.Equal(t, 2, strings.Count(log.String(), "listed without"), "%s", log)
	require.Equal(t, 2, strings.Count(log.String(), "listed with search attributes"), "%s", log)
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]searchattr.Mode{"": searchattr.Auto, "auto": searchattr.Auto, "on": searchattr.On,
		"off": searchattr.Off} {
		got, err := searchattr.ParseMode(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := searchattr.ParseMode("yes")
	require.ErrorContains(t, err, `"yes": use auto, on or off`)
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

func TestRegister(t *testing.T) {
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
		"may not":          {add: []error{denied()}, added: 1, says: "have an administrator do it: temporal operator"},
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
